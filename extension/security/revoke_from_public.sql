-- Functions are executable by everybody unless this is said; the rest is said so that it stays true whatever the
-- default privileges of the database are.
revoke all on schema pgflow from public;
revoke all on all tables in schema pgflow from public;
revoke all on all sequences in schema pgflow from public;
revoke all on all routines in schema pgflow from public;
