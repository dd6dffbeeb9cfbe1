create function pgflow.setup_requeue_stalled_tasks_cron(cron_interval text default '15 seconds')
returns text
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.schedule_cron_job(
    'pgflow_requeue_stalled_tasks', cron_interval, 'select pgflow.requeue_stalled_tasks();'
  );

  return format('Scheduled pgflow_requeue_stalled_tasks (%s).', cron_interval);
end
$function$;

comment on function pgflow.setup_requeue_stalled_tasks_cron(text) is
'Schedules requeue_stalled_tasks() through pg_cron, in place of an earlier job of that name. cron_interval is what pg_cron takes: seconds (pg_cron 1.5 and newer) or a cron expression. Returns what was scheduled. Raises PF019 without pg_cron, or when it doesn''t take the interval. As in pgflow 0.14.';
