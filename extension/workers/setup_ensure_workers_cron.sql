create function pgflow.setup_ensure_workers_cron(cron_interval text default '1 second')
returns text
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.schedule_cron_job(
    'pgflow_ensure_workers', cron_interval, 'select pgflow.ensure_workers();'
  );
  perform pgflow.schedule_cron_job(
    'pgflow_cleanup_logs', '0 * * * *', 'select pgflow.cleanup_ensure_workers_logs();'
  );

  return format(
    'Scheduled pgflow_ensure_workers (%s) and pgflow_cleanup_logs (hourly).', cron_interval
  );
end
$function$;

comment on function pgflow.setup_ensure_workers_cron(text) is
'Schedules ensure_workers() through pg_cron, with an hourly clean-up of pg_cron''s log, in place of earlier jobs of these names. cron_interval is what pg_cron takes: seconds (pg_cron 1.5 and newer) or a cron expression. Returns what was scheduled. Raises PF019 without pg_cron, or when it doesn''t take the interval. As in pgflow 0.14.';
