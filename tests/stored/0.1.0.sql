BEGIN TRANSACTION;
CREATE TABLE alembic_version_webdata (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_webdata_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version_webdata" VALUES('4c1f0a7d9b21');
CREATE TABLE webdata_asset_event (
	asset_id INTEGER NOT NULL, 
	job_id VARCHAR(200) NOT NULL, 
	conn_id VARCHAR(250) NOT NULL, 
	delivery_id BIGINT NOT NULL, 
	state VARCHAR(20) NOT NULL, 
	CONSTRAINT webdata_asset_event_pkey PRIMARY KEY (asset_id, job_id)
);
CREATE TABLE webdata_inbox_counter (
	id INTEGER NOT NULL, 
	last_position BIGINT NOT NULL, 
	CONSTRAINT webdata_inbox_counter_pkey PRIMARY KEY (id)
);
INSERT INTO "webdata_inbox_counter" VALUES(1,1795788120977171);
CREATE TABLE webdata_inbox_delivery (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	position BIGINT, 
	conn_id VARCHAR(250) NOT NULL, 
	dedupe VARCHAR(64) NOT NULL, 
	correlation_key VARCHAR(200), 
	event VARCHAR(200), 
	operation VARCHAR(200) NOT NULL, 
	name VARCHAR(200), 
	job_id VARCHAR(200), 
	monitor_id VARCHAR(200), 
	monitor_name VARCHAR(256), 
	dag_id VARCHAR(250), 
	is_meaningful BOOLEAN, 
	facts BLOB, 
	page_hash BIGINT, 
	success BOOLEAN, 
	received_at TIMESTAMP NOT NULL, 
	size INTEGER NOT NULL, 
	body BLOB NOT NULL, 
	replay_of BIGINT, 
	CONSTRAINT webdata_inbox_delivery_conn_id_dedupe_uq UNIQUE (conn_id, dedupe)
);
INSERT INTO "webdata_inbox_delivery" VALUES(1,1795788120977170,'stored','c4fac4f87040cc460e6b8c4d8f07a11bd5cb0bee171eeb717e37fdc1bb2bb48b','key','crawl.completed','crawl','completed','job',NULL,NULL,NULL,NULL,X'7B226372656469747355736564223A6E756C6C2C226D65746164617461223A7B7D7D',NULL,1,'2026-01-31 12:00:00.000000',106,X'7B2273756363657373223A20747275652C202274797065223A2022637261776C2E636F6D706C65746564222C20226964223A20226A6F62222C2022776562686F6F6B4964223A20226F6E6365222C202264617461223A205B5D2C20226D65746164617461223A207B7D7D',NULL);
INSERT INTO "webdata_inbox_delivery" VALUES(2,1795788120977171,'stored','ee33240ffcf40632b7bcb6ab0a15ced9d64e9e4aa19c16b4013b2a98926360f5','key','crawl.completed','crawl','completed','other',NULL,NULL,NULL,NULL,X'7B226372656469747355736564223A6E756C6C2C226D65746164617461223A7B7D7D',NULL,1,'2026-01-31 12:00:00.000000',109,X'7B2273756363657373223A20747275652C202274797065223A2022637261776C2E636F6D706C65746564222C20226964223A20226F74686572222C2022776562686F6F6B4964223A20227477696365222C202264617461223A205B5D2C20226D65746164617461223A207B7D7D',NULL);
CREATE INDEX idx_webdata_inbox_delivery_conn_id_position ON webdata_inbox_delivery (conn_id, position);
CREATE INDEX idx_webdata_inbox_delivery_correlation_key ON webdata_inbox_delivery (conn_id, correlation_key, position);
CREATE INDEX idx_webdata_inbox_delivery_job_id ON webdata_inbox_delivery (conn_id, job_id, position);
CREATE INDEX idx_webdata_inbox_delivery_monitor_id ON webdata_inbox_delivery (conn_id, monitor_id, position);
CREATE INDEX idx_webdata_inbox_delivery_page_hash ON webdata_inbox_delivery (conn_id, page_hash, position);
CREATE INDEX idx_webdata_inbox_delivery_event ON webdata_inbox_delivery (conn_id, name, operation, position);
CREATE INDEX idx_webdata_inbox_delivery_received_at ON webdata_inbox_delivery (received_at);
CREATE INDEX idx_webdata_inbox_delivery_pending ON webdata_inbox_delivery (position, id) WHERE position IS NULL;
CREATE INDEX idx_webdata_inbox_delivery_is_meaningful ON webdata_inbox_delivery (conn_id, job_id, is_meaningful) WHERE is_meaningful IS NOT NULL;
CREATE INDEX idx_webdata_asset_event_delivery_id ON webdata_asset_event (delivery_id);
CREATE INDEX idx_webdata_asset_event_state ON webdata_asset_event (state, asset_id, delivery_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('webdata_inbox_delivery',2);
COMMIT;
