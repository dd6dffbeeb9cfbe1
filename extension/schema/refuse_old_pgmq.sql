-- Queue tables of older releases differ (no last_read_at, or members of the extension that dumps leave out).
do $refuse_old_pgmq$
declare
  installed text;
begin
  select extension.extversion
  into installed
  from pg_catalog.pg_extension as extension
  where extension.extname = 'pgmq';

  if installed !~ '^[0-9]+[.][0-9]+' or (regexp_match(installed, '^([0-9]+)[.]([0-9]+)'))::int[] < array[1, 11] then
    raise exception using
      errcode = 'PF020',
      message = format('pgmq %s is too old for pgflow_stepq.', installed),
      detail = 'pgflow_stepq needs pgmq 1.11 or newer.',
      hint = 'Run ALTER EXTENSION pgmq UPDATE after installing a newer pgmq, then create the extension again.';
  end if;
end
$refuse_old_pgmq$;
