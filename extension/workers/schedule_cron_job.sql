create function pgflow.schedule_cron_job(job_name text, cron_schedule text, command text)
returns bigint
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  job_id bigint;
begin
  if to_regclass('cron.job') is null or not pgflow.is_trusted_schema('cron') then
    raise exception using
      errcode = 'PF019',
      message = format('Job "%s" can''t be scheduled: pg_cron is not installed in this database.', job_name),
      detail = format(
        'Wanted: %s, on the schedule "%s". Schema cron must belong to a role with the rights of the owner of pgflow.',
        command,
        coalesce(cron_schedule, 'null')
      ),
      hint = format(
        'Run create extension pg_cron, or let a scheduler of your own run this statement as often: %s', command
      );
  end if;

  execute 'select cron.unschedule(job.jobid) from cron.job as job where job.jobname = $1' using job_name;
  execute 'select cron.schedule($1, $2, $3)' into job_id using job_name, coalesce(cron_schedule, ''), command;

  return job_id;
exception
  when invalid_parameter_value then
    raise exception using
      errcode = 'PF019',
      message = format(
        'pg_cron does not take the schedule "%s" of job "%s".', coalesce(cron_schedule, 'null'), job_name
      ),
      detail = format('It said: %s. Jobs of that name are as they were.', sqlerrm),
      hint = 'Pass seconds (''15 seconds''; pg_cron 1.5 and newer) or a cron expression (''* * * * *'': every minute).';
end
$function$;

comment on function pgflow.schedule_cron_job(text, text, text) is
'Internal: makes a pg_cron job, in place of any of that name that the caller can see, and returns its id. Raises PF019 without pg_cron, saying what to schedule instead, and for a schedule that pg_cron doesn''t take.';
