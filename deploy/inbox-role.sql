-- SPDX-License-Identifier: Apache-2.0
-- The role of an inbox that runs alone: it can fill the inbox, and nothing else. Run after `airflow db migrate`,
-- with the role's password in INBOX_PASSWORD; again whenever the password changes.
\getenv password INBOX_PASSWORD
SELECT 'CREATE ROLE webdata_inbox LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'webdata_inbox') \gexec
ALTER ROLE webdata_inbox PASSWORD :'password';
GRANT SELECT, INSERT, UPDATE, DELETE ON webdata_inbox_delivery TO webdata_inbox;
GRANT SELECT, INSERT, UPDATE ON webdata_inbox_counter TO webdata_inbox;
GRANT SELECT, INSERT, UPDATE, DELETE ON webdata_inbox_refusal TO webdata_inbox;
GRANT SELECT, DELETE ON webdata_asset_event TO webdata_inbox;
GRANT USAGE ON SEQUENCE webdata_inbox_delivery_id_seq TO webdata_inbox;
