begin;
\ir ../helpers.psql
select plan(17);

select pg_temp.compile('orders', 'step', jsonb_build_array(pg_temp.step('pick'), pg_temp.step('pack', 'pick')));
select pg_temp.compile('lists', 'flow', jsonb_build_array(pg_temp.map('each'), pg_temp.step('sum', 'each')));

select results_eq(
  $$ select input, status, remaining_steps from pgflow.start_flows('orders', array['3', '1', '"a"', '{}', '1', 'null']::jsonb[]) $$,
  $$
    values
    ('3'::jsonb, 'started', 2), ('1', 'started', 2), ('"a"', 'started', 2), ('{}', 'started', 2), ('1', 'started', 2),
    ('null', 'started', 2)
  $$,
  'start_flows returns one run for each input, in the order of the inputs'
);
select results_eq(
  $$ select count(*), count(distinct message ->> 'run_id'), count(distinct msg_id) from pg_temp.messages('orders') $$,
  $$ values (6::bigint, 6::bigint, 6::bigint) $$,
  'each of them has its message'
);
select is(pg_temp.drain('orders'), 12, 'each of them can be worked on');
select results_eq(
  $$ select count(*) from pgflow.runs where flow_slug = 'orders' and status = 'completed' $$,
  $$ values (6::bigint) $$,
  'and completes'
);
select pg_temp.nothing_left('orders', 'nothing is left of them');

select results_eq(
  $$ select status, output from pgflow.start_flows('lists', array['[1, 2]', '[]', '[3]']::jsonb[]) $$,
  $$ values ('started', null::jsonb), ('started', null), ('started', null) $$,
  'inputs of different lengths make maps of different lengths, an empty one goes on to the next step'
);
select results_eq(
  $$
    select run.input, (select count(*) from pgflow.step_tasks as task where task.run_id = run.run_id and task.step_slug = 'each')
    from pgflow.runs as run
    where run.flow_slug = 'lists'
    order by 1
  $$,
  $$ values ('[]'::jsonb, 0::bigint), ('[3]', 1), ('[1, 2]', 2) $$,
  'each map has as many tasks as its own input has elements'
);

select pg_temp.picture('orders') as orders, pg_temp.picture('lists') as lists \gset

select throws_ok(
  $$ select pgflow.start_flows('lists', array['[1]', '{"a": 1}', '[2]']::jsonb[]) $$,
  'PF019', 'Flow lists has root map steps but input is not an array (got object)',
  'one bad input refuses all of them'
);
select throws_ok(
  $$ select pgflow.start_flows('orders', array['1', null, '2']::jsonb[]) $$,
  'PF019', null, 'so does one that is NULL'
);
select throws_ok(
  $$ select pgflow.start_flows('missing', array['1']::jsonb[]) $$,
  'PF018', 'Flow "missing" is not known.', 'an unknown flow is refused'
);
select is(pg_temp.picture('orders'), :'orders', 'a refusal starts nothing');
select is(pg_temp.picture('lists'), :'lists', 'not even the runs before the bad input');
select is_empty(
  $$ select * from pgflow.start_flows('orders', '{}') $$,
  'no inputs: no runs'
);
select is_empty(
  $$ select * from pgflow.start_flows('orders', null) $$,
  'NULL for the inputs: no runs'
);

-- Ids grow with time, so that new work lies together in the indexes.
create temporary table made as
select run.run_id::text as id, run.started_at from pgflow.start_flows('orders', array_fill('1'::jsonb, array[100])) as run;
select is((select count(distinct id) from made), 100::bigint, 'each run has an id of its own');
select is_empty(
  $$select id from made where id !~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'$$,
  'a UUID of version 7'
);
select is_empty(
  $$
    select id, started_at
    from made
    where to_timestamp(('x0000' || left(replace(id, '-', ''), 12))::bit(64)::bigint / 1000.0)
      not between now() - interval '1 second' and clock_timestamp()
  $$,
  'that begins with the time'
);

select * from finish();
rollback;
