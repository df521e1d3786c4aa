from dataclasses import dataclass
@dataclass
class H: websocket: bool=False
def judge_head(method,target,version,raw,*,bytes_max): return H(any(n.lower()==b"upgrade" for n,_ in raw))
def host_allowed(h,a,*,any_ip): return h.rsplit(":",1)[0].strip("[]") in a
def origin_allowed(o,a,c): return o in c or o.split("//")[-1].rsplit(":",1)[0] in a
