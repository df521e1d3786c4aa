-- A file as version 1 wrote it: one hold that was settled, one voided, one open, one expired and settled late.
CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('hold', 'settle', 'void', 'expire')),
    hold TEXT NOT NULL,
    at_s REAL NOT NULL,
    team TEXT NOT NULL DEFAULT '', key TEXT NOT NULL DEFAULT '', route TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '', suite TEXT NOT NULL DEFAULT '', tool TEXT NOT NULL DEFAULT '',
    credential TEXT NOT NULL DEFAULT '', chatbot TEXT NOT NULL DEFAULT '',
    credits INTEGER NOT NULL,
    calls INTEGER NOT NULL DEFAULT 0,
    basis TEXT NOT NULL DEFAULT '',
    ending TEXT NOT NULL DEFAULT '',
    uncertain INTEGER NOT NULL DEFAULT 0,
    quarter INTEGER,
    total_credits INTEGER,
    total_calls INTEGER
) STRICT;
CREATE UNIQUE INDEX one_hold ON entries (hold) WHERE kind = 'hold';
CREATE UNIQUE INDEX one_ending ON entries (hold) WHERE kind IN ('settle', 'void');
CREATE UNIQUE INDEX one_expiry ON entries (hold) WHERE kind = 'expire';
CREATE INDEX by_time ON entries (at_s);
CREATE TABLE totals (
    quarter INTEGER NOT NULL,
    team TEXT NOT NULL DEFAULT '', key TEXT NOT NULL DEFAULT '', route TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '', suite TEXT NOT NULL DEFAULT '', tool TEXT NOT NULL DEFAULT '',
    credential TEXT NOT NULL DEFAULT '', chatbot TEXT NOT NULL DEFAULT '',
    credits INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    PRIMARY KEY (quarter, team, key, route, model, suite, tool, credential, chatbot)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER totalled AFTER INSERT ON entries WHEN NEW.kind = 'settle' BEGIN
    INSERT OR REPLACE INTO totals (quarter, team, key, route, model, suite, tool, credential, chatbot, credits, calls)
    VALUES (NEW.quarter, NEW.team, NEW.key, NEW.route, NEW.model, NEW.suite, NEW.tool, NEW.credential, NEW.chatbot,
        NEW.total_credits, NEW.total_calls);
END;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE (ABORT, 'entries are never changed'); END;
CREATE TRIGGER entries_keep BEFORE DELETE ON entries BEGIN SELECT RAISE (ABORT, 'entries are never removed'); END;
PRAGMA user_version = 1;
INSERT INTO entries (kind, hold, at_s, team, key, route, model, credits) VALUES
    ('hold', 'a', 1800000000.0, 'red', 'k', 'chat', 'm', 30),
    ('hold', 'b', 1800000000.0, 'red', 'k', 'chat', 'm', 20),
    ('hold', 'c', 1800000000.0, 'red', 'k', 'chat', 'm', 10),
    ('hold', 'd', 1800000000.0, 'red', 'k', 'chat', 'm', 5);
INSERT INTO entries (kind, hold, at_s, team, key, route, model, credits, calls, basis, ending, quarter, total_credits,
    total_calls) VALUES
    ('settle', 'a', 1800000001.0, 'red', 'k', 'chat', 'm', 25, 1, 'usage', 'answered', 2000000, 25, 1);
INSERT INTO entries (kind, hold, at_s, credits, ending, uncertain) VALUES
    ('void', 'b', 1800000002.0, 0, 'gateway_failed', 1),
    ('expire', 'd', 1800000003.0, 0, '', 0);
INSERT INTO entries (kind, hold, at_s, team, key, route, model, credits, calls, basis, ending, quarter, total_credits,
    total_calls) VALUES
    ('settle', 'd', 1800000004.0, 'red', 'k', 'chat', 'm', 4, 0, 'usage', 'answered', 2000000, 29, 1);
