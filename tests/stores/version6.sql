-- A file as version 6 wrote it: what version 5 had, with a turn of a call that holds nothing.
CREATE TABLE entries (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL CHECK (kind IN ('hold', 'settle', 'void', 'expire', 'resolve', 'adjust')),
        hold TEXT NOT NULL,
        at_s REAL NOT NULL,
        team TEXT NOT NULL DEFAULT '', key TEXT NOT NULL DEFAULT '', route TEXT NOT NULL DEFAULT '', model TEXT NOT NULL DEFAULT '', suite TEXT NOT NULL DEFAULT '', tool TEXT NOT NULL DEFAULT '', credential TEXT NOT NULL DEFAULT '', chatbot TEXT NOT NULL DEFAULT '',
        credits INTEGER NOT NULL DEFAULT 0,
        calls INTEGER NOT NULL DEFAULT 0,
        basis TEXT NOT NULL DEFAULT '',
        ending TEXT NOT NULL DEFAULT '',
        uncertain INTEGER NOT NULL DEFAULT 0,
        quarter INTEGER,
        reason TEXT NOT NULL DEFAULT '',
        who TEXT NOT NULL DEFAULT ''
    , place INTEGER REFERENCES places (id)) STRICT;
INSERT INTO "entries" VALUES(1,'hold','a',1800000000.0,'red','k','chat','m','','','','',30,0,'','',0,NULL,'','',NULL);
INSERT INTO "entries" VALUES(2,'hold','b',1800000000.0,'red','k','chat','m','','','','',20,0,'','',0,NULL,'','',NULL);
INSERT INTO "entries" VALUES(3,'hold','c',1800000000.0,'red','k','chat','m','','','','',10,0,'','',0,NULL,'','',NULL);
INSERT INTO "entries" VALUES(4,'hold','d',1800000000.0,'blue','k','mcp','','calc','add','','',10,0,'','',0,NULL,'','',NULL);
INSERT INTO "entries" VALUES(5,'hold','e',1800000000.0,'red','k','chat','m','','','','',7,0,'','',0,NULL,'','',NULL);
INSERT INTO "entries" VALUES(6,'settle','a',1800000000.0,'red','k','chat','m','','','','',25,1,'usage','answered',0,2000000,'','',NULL);
INSERT INTO "entries" VALUES(7,'void','b',1800000000.0,'','','','','','','','',0,0,'','gateway_failed',1,NULL,'','',NULL);
INSERT INTO "entries" VALUES(8,'expire','d',1800000000.0,'','','','','','','','',0,0,'','',0,NULL,'','',NULL);
INSERT INTO "entries" VALUES(9,'settle','d',1800000000.0,'blue','k','mcp','','calc','add','','',12,1,'usage','answered',0,2000000,'','',NULL);
INSERT INTO "entries" VALUES(10,'expire','e',1800000000.0,'','','','','','','','',0,0,'','',0,NULL,'','',NULL);
INSERT INTO "entries" VALUES(11,'adjust','j',1800000000.0,'red','k','chat','m','','','','',4,0,'hand','',0,2000000,'a bill from before','lead',NULL);
CREATE TABLE keys (
        id TEXT NOT NULL PRIMARY KEY, team TEXT NOT NULL, hash TEXT NOT NULL, created_s REAL NOT NULL, expires_s REAL,
        revoked_s REAL, note TEXT NOT NULL
    ) STRICT;
INSERT INTO "keys" VALUES('new','red','abababababababababababababababababababababababababababababababab',1800000000.0,NULL,NULL,'takes over');
CREATE TABLE learned (
        route TEXT NOT NULL, model TEXT NOT NULL, density INTEGER NOT NULL, answers INTEGER NOT NULL,
        at_s REAL NOT NULL, PRIMARY KEY (route, model)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "learned" VALUES('chat','m',310,12,1800000000.0);
CREATE TABLE open_holds (hold TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO "open_holds" VALUES('c');
CREATE TABLE operations (
        id TEXT NOT NULL PRIMARY KEY, team TEXT NOT NULL, kind TEXT NOT NULL, model TEXT, hold TEXT NOT NULL,
        terms TEXT NOT NULL, begun_s REAL NOT NULL, ended_s REAL
    ) STRICT;
CREATE TABLE outcomes (
        team TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, hold TEXT, at_s REAL NOT NULL,
        status INTEGER, headers TEXT, body BLOB, kept_s REAL,
        PRIMARY KEY (team, key)
    ) STRICT;
CREATE TABLE owners (
        id TEXT NOT NULL PRIMARY KEY, team TEXT NOT NULL, model TEXT, at_s REAL NOT NULL,
        input_tokens INTEGER, output_tokens INTEGER
    ) STRICT;
CREATE TABLE places (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
INSERT INTO "places" VALUES(1,'team.yaml:7:5');
CREATE TABLE spent (team TEXT NOT NULL PRIMARY KEY, credits INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO "spent" VALUES('blue',12);
INSERT INTO "spent" VALUES('red',29);
CREATE TABLE successors (id TEXT NOT NULL PRIMARY KEY, account TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO "successors" VALUES('new','k');
CREATE TABLE totals (
        quarter INTEGER NOT NULL,
        team TEXT NOT NULL DEFAULT '', key TEXT NOT NULL DEFAULT '', route TEXT NOT NULL DEFAULT '', model TEXT NOT NULL DEFAULT '', suite TEXT NOT NULL DEFAULT '', tool TEXT NOT NULL DEFAULT '', credential TEXT NOT NULL DEFAULT '', chatbot TEXT NOT NULL DEFAULT '',
        credits INTEGER NOT NULL,
        calls INTEGER NOT NULL,
        PRIMARY KEY (quarter, team, key, route, model, suite, tool, credential, chatbot)
    ) STRICT, WITHOUT ROWID;
INSERT INTO "totals" VALUES(2000000,'blue','k','mcp','','calc','add','','',12,1);
INSERT INTO "totals" VALUES(2000000,'red','k','chat','m','','','','',29,1);
CREATE TABLE turns (
        id TEXT NOT NULL PRIMARY KEY, team TEXT NOT NULL DEFAULT '', key TEXT NOT NULL DEFAULT '', route TEXT NOT NULL DEFAULT '', model TEXT NOT NULL DEFAULT '', suite TEXT NOT NULL DEFAULT '', tool TEXT NOT NULL DEFAULT '', credential TEXT NOT NULL DEFAULT '', chatbot TEXT NOT NULL DEFAULT '', reserves INTEGER NOT NULL, spends INTEGER NOT NULL,
        tokens INTEGER NOT NULL, at_s REAL NOT NULL, boot_id TEXT NOT NULL, boot_s REAL NOT NULL,
        written_s REAL, written_boot_s REAL
    ) STRICT;
INSERT INTO "turns" VALUES('b','red','k','chat','m','','','','',1,1,500,1000000.0,'a start',50.0,1000001.0,51.0);
INSERT INTO "turns" VALUES('f','red','k','models','','','','','',0,0,0,1000002.0,'a start',52.0,NULL,NULL);
CREATE UNIQUE INDEX one_hold ON entries (hold) WHERE kind IN ('hold', 'adjust');
CREATE UNIQUE INDEX one_ending ON entries (hold) WHERE kind IN ('settle', 'void');
CREATE UNIQUE INDEX one_expiry ON entries (hold) WHERE kind = 'expire';
CREATE UNIQUE INDEX one_resolution ON entries (hold) WHERE kind = 'resolve';
CREATE INDEX by_time ON entries (at_s);
CREATE INDEX in_doubt ON entries (hold) WHERE uncertain = 1;
CREATE VIEW seldom AS SELECT NULL AS kind, NULL AS v0, NULL AS v1, NULL AS v2, NULL AS v3, NULL AS v4, NULL AS v5, NULL AS v6, NULL AS v7, NULL AS v8, NULL AS v9, NULL AS v10, NULL AS v11, NULL AS v12, NULL AS v13, NULL AS v14, NULL AS v15, NULL AS v16, NULL AS v17 WHERE false;
CREATE VIEW book AS SELECT NULL AS kind, NULL AS v0, NULL AS v1, NULL AS v2, NULL AS v3, NULL AS v4, NULL AS v5, NULL AS v6, NULL AS v7, NULL AS v8, NULL AS v9, NULL AS v10, NULL AS v11, NULL AS v12, NULL AS v13, NULL AS v14, NULL AS v15, NULL AS v16, NULL AS v17 WHERE false;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE (ABORT, 'entries are never changed'); END;
CREATE TRIGGER entries_keep BEFORE DELETE ON entries BEGIN SELECT RAISE (ABORT, 'entries are never removed'); END;
CREATE TRIGGER takes_hold INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'hold' BEGIN INSERT INTO entries (kind, hold, at_s, team, key, route, model, suite, tool, credential, chatbot, credits, place) VALUES ('hold', NEW.v0, NEW.v1, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v10, NEW.v11); INSERT INTO open_holds (hold) VALUES (NEW.v0); END;
CREATE TRIGGER takes_settle INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'settle' BEGIN INSERT INTO entries (kind, hold, at_s, team, key, route, model, suite, tool, credential, chatbot, credits, quarter, calls, basis, ending, uncertain) VALUES ('settle', NEW.v0, NEW.v1, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v10, NEW.v11, NEW.v12, NEW.v13, NEW.v14, NEW.v15); DELETE FROM open_holds WHERE hold = NEW.v0; INSERT INTO totals (quarter, team, key, route, model, suite, tool, credential, chatbot, credits, calls) VALUES (NEW.v11, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v10, NEW.v12) ON CONFLICT (quarter, team, key, route, model, suite, tool, credential, chatbot) DO UPDATE SET credits = credits + excluded.credits, calls = calls + excluded.calls; INSERT INTO spent (team, credits) VALUES (NEW.v2, NEW.v10) ON CONFLICT (team) DO UPDATE SET credits = credits + excluded.credits; END;
CREATE TRIGGER takes_void INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'void' BEGIN INSERT INTO entries (kind, hold, at_s, ending, uncertain) VALUES ('void', NEW.v0, NEW.v1, NEW.v2, NEW.v3); DELETE FROM open_holds WHERE hold = NEW.v0; END;
CREATE TRIGGER takes_expire INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'expire' BEGIN INSERT INTO entries (kind, hold, at_s) VALUES ('expire', NEW.v0, NEW.v1); DELETE FROM open_holds WHERE hold = NEW.v0; END;
CREATE TRIGGER takes_told INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'told' BEGIN INSERT INTO entries (kind, hold, at_s, team, key, route, model, suite, tool, credential, chatbot, credits, quarter, basis, reason, who) VALUES ('settle', NEW.v0, NEW.v1, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v10, NEW.v11, NEW.v12, NEW.v13, NEW.v14); DELETE FROM open_holds WHERE hold = NEW.v0; INSERT INTO totals (quarter, team, key, route, model, suite, tool, credential, chatbot, credits, calls) VALUES (NEW.v11, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v10, 0) ON CONFLICT (quarter, team, key, route, model, suite, tool, credential, chatbot) DO UPDATE SET credits = credits + excluded.credits, calls = calls + excluded.calls; INSERT INTO spent (team, credits) VALUES (NEW.v2, NEW.v10) ON CONFLICT (team) DO UPDATE SET credits = credits + excluded.credits; END;
CREATE TRIGGER takes_resolve INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'resolve' BEGIN INSERT INTO entries (kind, hold, at_s, team, key, route, model, suite, tool, credential, chatbot, credits, quarter, basis, reason, who) VALUES ('resolve', NEW.v0, NEW.v1, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v10, NEW.v11, NEW.v12, NEW.v13, NEW.v14); INSERT INTO totals (quarter, team, key, route, model, suite, tool, credential, chatbot, credits, calls) VALUES (NEW.v11, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v10, 0) ON CONFLICT (quarter, team, key, route, model, suite, tool, credential, chatbot) DO UPDATE SET credits = credits + excluded.credits, calls = calls + excluded.calls; INSERT INTO spent (team, credits) VALUES (NEW.v2, NEW.v10) ON CONFLICT (team) DO UPDATE SET credits = credits + excluded.credits; END;
CREATE TRIGGER takes_adjust INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'adjust' BEGIN INSERT INTO entries (kind, hold, at_s, team, key, route, model, suite, tool, credential, chatbot, credits, quarter, basis, reason, who) VALUES ('adjust', NEW.v0, NEW.v1, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v10, NEW.v11, NEW.v12, NEW.v13, NEW.v14); INSERT INTO totals (quarter, team, key, route, model, suite, tool, credential, chatbot, credits, calls) VALUES (NEW.v11, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v10, 0) ON CONFLICT (quarter, team, key, route, model, suite, tool, credential, chatbot) DO UPDATE SET credits = credits + excluded.credits, calls = calls + excluded.calls; INSERT INTO spent (team, credits) VALUES (NEW.v2, NEW.v10) ON CONFLICT (team) DO UPDATE SET credits = credits + excluded.credits; END;
CREATE TRIGGER takes_place INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'place' BEGIN INSERT INTO places (id, text) VALUES (NEW.v0, NEW.v1); END;
CREATE TRIGGER takes_own INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'own' BEGIN INSERT INTO owners (id, team, model, at_s) VALUES (NEW.v0, NEW.v1, NEW.v2, NEW.v3) ON CONFLICT (id) DO NOTHING; END;
CREATE TRIGGER takes_used INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'used' BEGIN UPDATE owners SET input_tokens = NEW.v1, output_tokens = NEW.v2 WHERE id = NEW.v0; END;
CREATE TRIGGER takes_begin INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'begin' BEGIN DELETE FROM operations WHERE id = NEW.v0; INSERT INTO operations (id, team, kind, model, hold, terms, begun_s) VALUES (NEW.v0, NEW.v1, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6); END;
CREATE TRIGGER takes_finish INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'finish' BEGIN UPDATE operations SET ended_s = NEW.v1 WHERE id = NEW.v0; END;
CREATE TRIGGER takes_promise INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'promise' BEGIN DELETE FROM outcomes WHERE team = NEW.v0 AND key = NEW.v1; INSERT INTO outcomes (team, key, digest, hold, at_s) VALUES (NEW.v0, NEW.v1, NEW.v2, NEW.v3, NEW.v4); END;
CREATE TRIGGER takes_keep INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'keep' BEGIN UPDATE outcomes SET status = NEW.v2, headers = NEW.v3, body = NEW.v4, kept_s = NEW.v5 WHERE team = NEW.v0 AND key = NEW.v1; END;
CREATE TRIGGER takes_release INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'release' BEGIN DELETE FROM outcomes WHERE team = NEW.v0 AND key = NEW.v1; END;
CREATE TRIGGER takes_key INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'key' BEGIN INSERT INTO keys (id, team, hash, created_s, expires_s, note) VALUES (NEW.v0, NEW.v1, NEW.v2, NEW.v3, NEW.v4, NEW.v5) ON CONFLICT (id) DO NOTHING; INSERT INTO successors (id, account) SELECT NEW.v0, NEW.v6 WHERE NEW.v6 <> '' AND EXISTS (SELECT 1 FROM keys WHERE id = NEW.v0 AND hash = NEW.v2) ON CONFLICT (id) DO NOTHING; END;
CREATE TRIGGER takes_revoke INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'revoke' BEGIN UPDATE keys SET revoked_s = min(NEW.v1, coalesce(revoked_s, NEW.v1)) WHERE id = NEW.v0; END;
CREATE TRIGGER takes_turn INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'turn' BEGIN INSERT INTO turns (id, team, key, route, model, suite, tool, credential, chatbot, reserves, spends, tokens, at_s, boot_id, boot_s) VALUES (NEW.v0, NEW.v1, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v10, NEW.v11, NEW.v12, NEW.v13, NEW.v14) ON CONFLICT (id) DO NOTHING; END;
CREATE TRIGGER takes_written INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'written' BEGIN UPDATE turns SET written_s = NEW.v1, written_boot_s = NEW.v2 WHERE id = NEW.v0; END;
CREATE TRIGGER takes_learned INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'learned' BEGIN INSERT INTO learned (route, model, density, answers, at_s) VALUES (NEW.v0, NEW.v1, NEW.v2, NEW.v3, NEW.v4) ON CONFLICT (route, model) DO UPDATE SET density = excluded.density, answers = excluded.answers, at_s = excluded.at_s; END;
CREATE TRIGGER takes_forget_owners INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'forget_owners' BEGIN DELETE FROM owners WHERE rowid IN (SELECT rowid FROM owners ORDER BY rowid LIMIT 500) AND at_s < NEW.v0; END;
CREATE TRIGGER takes_forget_operations INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'forget_operations' BEGIN DELETE FROM operations WHERE rowid IN (SELECT rowid FROM operations ORDER BY rowid LIMIT 500) AND ended_s < NEW.v0; END;
CREATE TRIGGER takes_forget_outcomes INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'forget_outcomes' BEGIN DELETE FROM outcomes WHERE rowid IN (SELECT rowid FROM outcomes ORDER BY rowid LIMIT 500) AND at_s < NEW.v0; END;
CREATE TRIGGER takes_forget_turns INSTEAD OF INSERT ON seldom WHEN NEW.kind = 'forget_turns' BEGIN DELETE FROM turns WHERE rowid IN (SELECT rowid FROM turns ORDER BY rowid LIMIT 500) AND coalesce(written_s, at_s) < NEW.v0; END;
CREATE TRIGGER takes_admitted INSTEAD OF INSERT ON book WHEN NEW.kind = 'admitted' BEGIN INSERT INTO entries (kind, hold, at_s, team, key, route, model, suite, tool, credential, chatbot, credits, place) VALUES ('hold', NEW.v0, NEW.v1, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v10, NEW.v11); INSERT INTO open_holds (hold) VALUES (NEW.v0); INSERT INTO turns (id, team, key, route, model, suite, tool, credential, chatbot, reserves, spends, tokens, at_s, boot_id, boot_s) VALUES (NEW.v0, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v12, NEW.v13, NEW.v14, NEW.v15, NEW.v16, NEW.v17) ON CONFLICT (id) DO NOTHING; END;
CREATE TRIGGER takes_ended INSTEAD OF INSERT ON book WHEN NEW.kind = 'ended' BEGIN INSERT INTO entries (kind, hold, at_s, team, key, route, model, suite, tool, credential, chatbot, credits, quarter, calls, basis, ending, uncertain) VALUES ('settle', NEW.v0, NEW.v1, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v10, NEW.v11, NEW.v12, NEW.v13, NEW.v14, NEW.v15); DELETE FROM open_holds WHERE hold = NEW.v0; INSERT INTO totals (quarter, team, key, route, model, suite, tool, credential, chatbot, credits, calls) VALUES (NEW.v11, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v10, NEW.v12) ON CONFLICT (quarter, team, key, route, model, suite, tool, credential, chatbot) DO UPDATE SET credits = credits + excluded.credits, calls = calls + excluded.calls; INSERT INTO spent (team, credits) VALUES (NEW.v2, NEW.v10) ON CONFLICT (team) DO UPDATE SET credits = credits + excluded.credits; UPDATE turns SET written_s = NEW.v16, written_boot_s = NEW.v17 WHERE id = NEW.v0; END;
CREATE TRIGGER takes_seldom INSTEAD OF INSERT ON book WHEN NEW.kind <> 0 AND NEW.kind <> 'admitted' AND NEW.kind <> 'ended' BEGIN INSERT INTO seldom VALUES (NEW.kind, NEW.v0, NEW.v1, NEW.v2, NEW.v3, NEW.v4, NEW.v5, NEW.v6, NEW.v7, NEW.v8, NEW.v9, NEW.v10, NEW.v11, NEW.v12, NEW.v13, NEW.v14, NEW.v15, NEW.v16, NEW.v17); END;
PRAGMA user_version = 6;
