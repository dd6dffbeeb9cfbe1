create function pgflow.cleanup_ensure_workers_logs(retention_hours int default 24)
returns table (cron_deleted bigint)
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  if coalesce(retention_hours, -1) < 0 then
    raise exception using
      errcode = 'PF019',
      message = format('The log can''t be kept for %s hours.', coalesce(retention_hours::text, 'null')),
      detail = 'retention_hours is a whole number from 0.',
      hint = 'Pass how many hours of the log to keep, for example 24.';
  end if;

  if to_regclass('cron.job_run_details') is null or not pgflow.is_trusted_schema('cron') then
    raise exception using
      errcode = 'PF019',
      message = 'There is no log to clean up: pg_cron is not installed in this database.',
      detail = 'The log is the table cron.job_run_details, in a schema whose owner has the rights of the owner of pgflow.',
      hint = 'Without pg_cron nothing writes such a log; leave the call out.';
  end if;

  -- Capped at a century: the server's dates come to an end.
  execute 'delete from cron.job_run_details where end_time < $1'
  using clock_timestamp() - make_interval(hours => least(retention_hours, 876600));

  get diagnostics cron_deleted = row_count;
  return next;
end
$function$;

comment on function pgflow.cleanup_ensure_workers_logs(int) is
'Deletes the entries of pg_cron''s log that ended more than retention_hours ago, of all jobs, and returns how many. Jobs that run every second fill that log fast. Raises PF019 without pg_cron or for a negative retention. As in pgflow 0.14.';
