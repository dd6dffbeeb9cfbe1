begin;
\ir ../helpers.psql
select plan(6);

select pg_temp.compile(
  'large', 'step', jsonb_build_array(pg_temp.map('each'), pg_temp.map('few', 'each', pg_temp.only_if('{"each": [-1]}')), pg_temp.step('sum', 'each'))
);
select pg_temp.start('large', 'l', (select jsonb_agg(n) from generate_series(1, 10000) as n));

select results_eq(
  $$
    select count(*), count(distinct task.message_id), bool_and(task.message_id - task.task_index = first.message_id)
    from pgflow.step_tasks as task
    cross join (select min(message_id) as message_id from pgflow.step_tasks where flow_slug = 'large') as first
    where task.flow_slug = 'large'
  $$,
  $$ values (10000::bigint, 10000::bigint, true) $$,
  'a map over 10,000 elements has 10,000 messages, ids ascending with the task index'
);
select is(
  pg_temp.drain('large', '{"sum": "done"}', 2500), 10001, 'it runs to its end in batches'
);
select results_eq(
  $$
    select run.status, run.remaining_steps, run.output, state.remaining_tasks, state.output = run.input
    from pgflow.runs as run
    inner join pgflow.step_states as state on state.run_id = run.run_id and state.step_slug = 'each'
    where run.run_id = pg_temp.id('l')
  $$,
  $$ values ('completed', 0, '{"sum": "done"}'::jsonb, 0, true) $$,
  'every output is in its place'
);
select is(
  pg_temp.steps('l'), 'each completed, few skipped (condition_unmet), sum completed',
  'a condition can be judged on an output of that size'
);
select is((select count(*) from pg_temp.messages('large')), 0::bigint, 'no message is left');
select is((select count(*) from pg_temp.archived('large')), 10001::bigint, 'all are archived');

select * from finish();
rollback;
