-- pg_cron is not to be had on every server: a stand-in records what it is asked.
begin;
\ir helpers.psql

select plan(18);

-- Without pg_cron.
select results_eq(
  $outer$select sqlstate, message, hint from pg_temp.refusal('select pgflow.setup_requeue_stalled_tasks_cron()')$outer$,
  $$
    values (
      'PF019',
      'Job "pgflow_requeue_stalled_tasks" can''t be scheduled: pg_cron is not installed in this database.',
      'Run create extension pg_cron, or let a scheduler of your own run this statement as often: '
      'select pgflow.requeue_stalled_tasks();'
    )
  $$,
  'without pg_cron the refusal says what to schedule instead'
);
select results_eq(
  $$select sqlstate, hint like '%select pgflow.ensure_workers();' from pg_temp.refusal('select pgflow.setup_ensure_workers_cron()')$$,
  $$values ('PF019', true)$$,
  'for the start of workers too'
);
select throws_ok(
  'select pgflow.cleanup_ensure_workers_logs()',
  'PF019', 'There is no log to clean up: pg_cron is not installed in this database.', 'and there is no log to clean up'
);

create schema cron;
create table cron.job (jobid bigserial, jobname text, schedule text, command text);
create table cron.job_run_details (runid bigserial, jobid bigint, end_time timestamptz);
create function cron.unschedule(job_id bigint)
returns boolean
language sql
as $$
  delete from cron.job as job where job.jobid = job_id;
  select true;
$$;
create function cron.schedule(job_name text, schedule text, command text)
returns bigint
language plpgsql
as $$
declare
  job_id bigint;
begin
  if schedule !~ '^[0-9]+ seconds?$|^([0-9*/]+ ){4}[0-9*/]+$' then
    raise exception using errcode = '22023', message = 'invalid schedule: ' || schedule;
  end if;

  insert into cron.job (jobname, schedule, command)
  values (job_name, schedule.schedule, schedule.command)
  returning jobid into job_id;
  return job_id;
end
$$;
insert into cron.job (jobname, schedule, command)
values
('pgflow_ensure_workers', '* * * * *', 'select of an earlier release'),
('pgflow_ensure_workers', '* * * * *', 'and of one before'),
('somebody_elses', '* * * * *', 'select 1');

select is(
  pgflow.setup_ensure_workers_cron(),
  'Scheduled pgflow_ensure_workers (1 second) and pgflow_cleanup_logs (hourly).', 'what was scheduled is said'
);
select results_eq(
  'select jobname, schedule, command from cron.job order by jobname',
  $$
    values
    ('pgflow_cleanup_logs', '0 * * * *', 'select pgflow.cleanup_ensure_workers_logs();'),
    ('pgflow_ensure_workers', '1 second', 'select pgflow.ensure_workers();'),
    ('somebody_elses', '* * * * *', 'select 1')
  $$,
  'one job a name, in place of all earlier ones, and others stay'
);
select pgflow.setup_ensure_workers_cron('30 seconds');
select results_eq(
  $$select schedule from cron.job where jobname = 'pgflow_ensure_workers'$$, array['30 seconds'], 'a new interval replaces it'
);
select results_eq(
  $outer$select sqlstate, message, detail from pg_temp.refusal($$select pgflow.setup_ensure_workers_cron('often')$$)$outer$,
  $$
    values (
      'PF019',
      'pg_cron does not take the schedule "often" of job "pgflow_ensure_workers".',
      'It said: invalid schedule: often. Jobs of that name are as they were.'
    )
  $$,
  'what pg_cron does not take is refused with what it said'
);
select throws_ok('select pgflow.setup_ensure_workers_cron(null)', 'PF019', null, 'and so is no interval at all');
select results_eq(
  $$select schedule from cron.job where jobname = 'pgflow_ensure_workers'$$, array['30 seconds'], 'the job stays as it was'
);
select is(
  pgflow.setup_requeue_stalled_tasks_cron(), 'Scheduled pgflow_requeue_stalled_tasks (15 seconds).', 'recovery is scheduled'
);
select results_eq(
  $$select schedule, command from cron.job where jobname = 'pgflow_requeue_stalled_tasks'$$,
  $$values ('15 seconds', 'select pgflow.requeue_stalled_tasks();')$$,
  'every 15 seconds'
);
select lives_ok(
  (select command from cron.job where jobname = 'pgflow_requeue_stalled_tasks'), 'by a statement that runs'
);
select lives_ok((select command from cron.job where jobname = 'pgflow_ensure_workers'), 'as that for workers does');

-- The log.
insert into cron.job_run_details (end_time)
values
(now() - interval '25 hours'), (now() - interval '23 hours'), (now() - interval '1 hour'), (null);
select lives_ok((select command from cron.job where jobname = 'pgflow_cleanup_logs'), 'and that for the log');
select is((select count(*) from cron.job_run_details), 3::bigint, 'a day of the log is kept');
select results_eq('select * from pgflow.cleanup_ensure_workers_logs(2)', array[1::bigint], 'or as many hours as asked for');
select throws_ok(
  'select * from pgflow.cleanup_ensure_workers_logs(-1)',
  'PF019', 'The log can''t be kept for -1 hours.', 'a negative number is refused'
);
select results_eq(
  'select * from pgflow.cleanup_ensure_workers_logs(2147483647)', array[0::bigint], 'a huge one keeps everything'
);

select * from finish();
rollback;
