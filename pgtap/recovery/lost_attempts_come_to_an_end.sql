-- A task that kills its workers: each lost attempt is an attempt, a task is requeued three times at most, and then it
-- fails as any other task that used up its attempts. No run stays started with nothing left to move it.
begin;
\ir ../claiming/helpers.psql

select plan(56);

-- Claims what there is and loses it, until a sweep finds nothing to queue again. Returns how often the task started.
create function pg_temp.poison(flow_slug text, step_slug text, run_name text)
returns int
language plpgsql
as $$
declare
  starts int := 0;
begin
  for round in 1..20 loop
    exit when not exists (select from pg_temp.claim(poison.flow_slug, poison.step_slug) where outcome = 'claimed');
    starts := starts + 1;
    perform pg_temp.age(poison.run_name, interval '1 day');
    perform pgflow.requeue_stalled_tasks();
  end loop;
  return starts;
end
$$;

create function pg_temp.shape(max_attempts int, when_exhausted text)
returns jsonb
language sql
as $$
  select jsonb_build_array(
    pg_temp.step(
      'a', more => pg_temp.options(max_attempts => shape.max_attempts) || jsonb_build_object('whenExhausted', when_exhausted)
    ),
    pg_temp.step('b', 'a'),
    pg_temp.step('side')
  )
$$;

-- Of every number of attempts and every whenExhausted.
create temporary table scenarios as
select
  format('f%s_%s', attempts.max_attempts, replace(ending.when_exhausted, '-', '_')) as slug,
  attempts.max_attempts,
  attempts.starts,
  ending.when_exhausted,
  ending.steps,
  ending.run
from (
  values
  (1, 1),
  (3, 3),
  (4, 4),
  (10, 4)
) as attempts (max_attempts, starts)
cross join (
  values
  ('fail', 'a failed, b created, side started', 'failed, 3 left'),
  ('skip', 'a skipped (handler_failed), b started, side started', 'started, 2 left'),
  ('skip-cascade', 'a skipped (handler_failed), b skipped (dependency_skipped), side started', 'started, 1 left')
) as ending (when_exhausted, steps, run);

select pg_temp.compile(scenario.slug, 'step', pg_temp.shape(scenario.max_attempts, scenario.when_exhausted))
from scenarios as scenario;
select pg_temp.start(scenario.slug, scenario.slug) from scenarios as scenario;

select is(
  pg_temp.poison(scenario.slug, 'a', scenario.slug),
  scenario.starts,
  format('of %s attempts at most, %s are started (%s)', scenario.max_attempts, scenario.starts, scenario.when_exhausted)
)
from scenarios as scenario
order by scenario.max_attempts, scenario.when_exhausted;

select is(
  pg_temp.steps(scenario.slug),
  scenario.steps,
  format('whenExhausted %s decides (%s attempts)', scenario.when_exhausted, scenario.max_attempts)
)
from scenarios as scenario
order by scenario.max_attempts, scenario.when_exhausted;

select is(
  pg_temp.run(scenario.slug),
  scenario.run,
  format('... and what becomes of the run (%s, %s attempts)', scenario.when_exhausted, scenario.max_attempts)
)
from scenarios as scenario
order by scenario.max_attempts, scenario.when_exhausted;

select results_eq(
  $$
    select scenario.slug, task.status, task.attempts_count, task.requeued_count, task.permanently_stalled_at is not null,
      task.failed_at is not null, task.error_message is not null
    from scenarios as scenario
    cross join lateral pg_temp.task(scenario.slug, 'a') as task
    order by 1
  $$,
  $$
    select scenario.slug, 'failed', scenario.starts, scenario.starts - 1, true, true, true
    from scenarios as scenario
    order by 1
  $$,
  'the task is failed and marked as permanently stalled'
);
select is_empty(
  $$
    select scenario.slug, pg_temp.whereabouts(scenario.slug || '__a', pg_temp.msg(scenario.slug, 'a'))
    from scenarios as scenario
    where pg_temp.whereabouts(scenario.slug || '__a', pg_temp.msg(scenario.slug, 'a')) <> 'archived'
  $$,
  'its message is in the archive'
);
select is_empty('select * from pgflow.stalled_tasks', 'nothing is stalled');
select is(pgflow.requeue_stalled_tasks(), 0, 'a further sweep has nothing to do');
select is_empty(
  $$select * from scenarios as scenario cross join lateral pg_temp.claim(scenario.slug, 'a') as task$$,
  'nobody gets the task again'
);
select is_empty(
  $$
    select scenario.slug
    from scenarios as scenario
    where scenario.when_exhausted = 'fail'
      and (
        (pg_temp.task(scenario.slug, 'side')).status <> 'cancelled'
        or pg_temp.whereabouts(scenario.slug || '__side', pg_temp.msg(scenario.slug, 'side')) <> 'archived'
      )
  $$,
  'a run that fails cancels its other tasks, on whichever queue'
);
select pg_temp.is_sound(scenario.slug, format('%s attempts, %s: sound', scenario.max_attempts, scenario.when_exhausted))
from scenarios as scenario
where scenario.max_attempts in (1, 3)
order by scenario.slug;

-- In flow mode, and of a map: the task that is lost fails its step, the others end with it.
select pg_temp.compile(
  'g', 'flow',
  jsonb_build_array(
    pg_temp.map('m', more => pg_temp.options(max_attempts => 1) || '{"whenExhausted": "skip"}'), pg_temp.step('after',
    'm')
  )
);
select pg_temp.start('g', 'map', '[1, 2, 3]');
select is((select count(*) from pg_temp.claim('g', null, 2)), 2::bigint, 'two of three map tasks are started');
select pgflow.complete_task(pg_temp.id('map'), 'm', 0, '1');
select pg_temp.age('map', interval '1 day');
select is(pgflow.requeue_stalled_tasks(), 0, 'the second one is lost; nothing is queued again');
select is(
  pg_temp.tasks('map', 'm'), 'completed, failed, skipped',
  'it fails, the third is skipped, the first stays as it was'
);
select is(pg_temp.steps('map'), 'm skipped (handler_failed), after started', 'and the run goes on');
select is(pg_temp.drain('g'), 1, 'to its end');
select pg_temp.nothing_left('g', 'nothing is left behind');

-- Fewer attempts than were used, since the options were lowered meanwhile.
select pg_temp.compile('low', 'step', jsonb_build_array(pg_temp.step('a')), '{"maxAttempts": 9}');
select pg_temp.start('low', 'low');
select pg_temp.take('low', 'a');
update pgflow.flows
set opt_max_attempts = 0
where flow_slug = 'low';
select pg_temp.age('low', interval '1 day');
select is(pgflow.requeue_stalled_tasks(), 0, 'a task without attempts left is not queued again');
select is(pg_temp.run('low'), 'failed, 1 left', 'its run fails');

select *
from finish();
rollback;
