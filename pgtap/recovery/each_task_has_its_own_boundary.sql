-- Recovery judges each task by its effective timeout (the step's, else the flow's) plus 30 seconds.
begin;
\ir ../claiming/helpers.psql

select plan(13);

create function pg_temp.steps_of_all()
returns jsonb
language sql
as $$
  select jsonb_build_array(
    pg_temp.step('short', more => pg_temp.options(timeout => 5)),
    pg_temp.step('same', more => pg_temp.options(timeout => 60)),
    pg_temp.step('none'),
    pg_temp.step('long', more => pg_temp.options(timeout => 3600)),
    pg_temp.step('endless', more => pg_temp.options(timeout => 2147483647))
  )
$$;
select pg_temp.compile('f', 'step', pg_temp.steps_of_all(), '{"timeout": 60}');
select pg_temp.compile('g', 'flow', pg_temp.steps_of_all(), '{"timeout": 60}');
select pg_temp.start('f', 'r');
select pg_temp.start('g', 's');

select pg_temp.take('f', slug) from unnest(array['short', 'same', 'none', 'long', 'endless']) as slug;
select is((select count(*) from pg_temp.claim('g', null, 10)), 5::bigint, 'five tasks of each flow are started');

create function pg_temp.started(run_name text)
returns setof text
language sql
as $$
  select task.step_slug
  from pgflow.step_tasks as task
  inner join pgflow.steps as step
    on step.flow_slug = task.flow_slug
    and step.step_slug = task.step_slug
  where task.run_id = pg_temp.id(run_name)
    and task.status = 'started'
  order by step.step_index
$$;

-- All of them began, together, as many seconds ago.
create function pg_temp.age_to(by interval)
returns void
language sql
as $$
  update pgflow.step_tasks as task
  set started_at = clock_timestamp() - age_to.by
  where task.status = 'started'
$$;

select pg_temp.age_to('34 s');
select is(pgflow.requeue_stalled_tasks(), 0, 'after 34 seconds all are left alone');
select pg_temp.age_to('35 s');
select is(pgflow.requeue_stalled_tasks(), 2, 'after 35 seconds the timeout of 5 is over');
select results_eq($$select pg_temp.started('r')$$, array['same', 'none', 'long', 'endless'], 'in step mode');
select results_eq($$select pg_temp.started('s')$$, array['same', 'none', 'long', 'endless'], 'and in flow mode');
select pg_temp.age_to('89 s');
select is(pgflow.requeue_stalled_tasks(), 0, 'after 89 seconds no other one is');
select pg_temp.age_to('90 s');
select is(pgflow.requeue_stalled_tasks(), 4, 'after 90 seconds that of 60 is, the step''s own and the flow''s');
select results_eq($$select pg_temp.started('r')$$, array['long', 'endless'], 'in step mode');
select results_eq($$select pg_temp.started('s')$$, array['long', 'endless'], 'and in flow mode');
select pg_temp.age_to('3630 s');
select is(pgflow.requeue_stalled_tasks(), 2, 'after an hour the long one is');
select pg_temp.age_to('365 days');
select is(pgflow.requeue_stalled_tasks(), 0, 'the longest one can be waited for');
select pg_temp.age_to('365 days 30 s');
select is(pgflow.requeue_stalled_tasks(), 2, 'it is a year');

-- A lease that was extended ends later, per task.
select results_eq(
  $$select vt <= clock_timestamp() from pg_temp.messages('g')$$,
  array[true, true, true, true, true],
  'all that was requeued can be read'
);

select *
from finish();
rollback;
