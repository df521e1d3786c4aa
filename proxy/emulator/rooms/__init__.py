"""One room per family of endpoints: each function takes the world and a call and decides the answer, without IO."""
