begin;
\ir ../helpers.psql
select plan(12);

select pg_temp.compile(
  'f', 'step',
  jsonb_build_array(
    pg_temp.step('a'), pg_temp.map('b', 'a'), pg_temp.step('unmet', 'a', pg_temp.only_if('{"never": 1}')), pg_temp.step('c', 'b')
  )
);

select is(pgflow.event_sink(), null, 'a plain server sends no events');
select pg_temp.start('f', 'plain');
select is(pg_temp.drain('f', '{"a": [1]}'), 3, 'and needs none to run');

-- pg_notify.

select set_config('pgflow.events', 'notify', true);
select is(pgflow.event_sink(), 'notify', 'a setting sends them to pg_notify');
select pg_temp.start('f', 'notified', to_jsonb(repeat('long input ', 10000)));
select is(
  pg_temp.drain('f', jsonb_build_object('a', jsonb_build_array(repeat('long output ', 10000)))), 3,
  'inputs and outputs of 100,000 characters never make a call fail'
);
select is(length(pg_temp.output('notified') ->> 'c') > 100000, true, 'they arrive whole');
select pg_temp.start('f', 'broken');
select lives_ok(
  $$
    select pgflow.fail_task(run_id, step_slug, task_index, repeat('long message ', 10000))
    from pg_temp.take('f', 'a')
  $$,
  'nor does a message of that size'
);
select pg_temp.compile(
  'g', 'flow', jsonb_build_array(pg_temp.step(repeat('s', 128), '', pg_temp.options(max_attempts => 1)))
);
select pg_temp.start('g', 'slugs');
select lives_ok($$ select pg_temp.spoil('g', null, repeat('long message ', 10000)) $$, 'nor a slug of the greatest length');
select set_config('pgflow.events', 'nowhere', true);
select is(pgflow.event_sink(), null, 'any other value sends them nowhere');

-- realtime.send goes before.

select set_config('pgflow.events', 'notify', true);
\ir ../recorded_events.psql
select is(pgflow.event_sink(), 'realtime', 'where realtime.send exists, it gets them');
select pg_temp.start('f', 'sent');
select is(pg_temp.events('sent'), 'run:started, step:a:started', 'by name and topic');

-- A function of that name with other arguments is not it.

drop function realtime.send(jsonb, text, text, boolean);
create function realtime.send(payload text)
returns void
language sql
as $$
  select
$$;
select is(pgflow.event_sink(), 'notify', 'a function of that name that takes something else does not');
select lives_ok($$ select pg_temp.start('f', 'unsent') $$, 'and does no harm');

select * from finish();
rollback;
