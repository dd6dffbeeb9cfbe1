begin;
\ir ../helpers.psql
\ir ../recorded_events.psql
select plan(13);

-- A chain, and a fan.

select pg_temp.compile('chain', 'step', jsonb_build_array(pg_temp.step('a'), pg_temp.step('b', 'a'), pg_temp.step('c', 'b')));
select pg_temp.start('chain', 'chain');
select pg_temp.drain('chain');
select is(
  pg_temp.events('chain'),
  'run:started, step:a:started, step:a:completed, step:b:started, step:b:completed, step:c:started, step:c:completed, run:completed',
  'a step completes before the next one starts, the run comes first and last'
);

select pg_temp.compile(
  'fan', 'flow', jsonb_build_array(pg_temp.step('z'), pg_temp.step('y', 'z'), pg_temp.step('x', 'z'), pg_temp.map('m', 'z'))
);
select pg_temp.start('fan', 'fan');
select pg_temp.work('fan', null, '[1, 2]');
select is(
  pg_temp.events('fan'),
  'run:started, step:z:started, step:z:completed, step:y:started, step:x:started, step:m:started',
  'steps that start together are told in their order'
);
select count(*) from pg_temp.claim('fan', null, 10);
select count(*)
from pgflow.complete_tasks(
  (
    select jsonb_agg(jsonb_build_object('run_id', run_id, 'step_slug', step_slug, 'task_index', task_index, 'output', null) order by step_slug asc, task_index desc)
    from pgflow.step_tasks
    where run_id = pg_temp.id('fan')
      and status = 'started'
  )
);
select is(
  pg_temp.events('fan'),
  'run:started, step:z:started, step:z:completed, step:y:started, step:x:started, step:m:started, '
  'step:y:completed, step:x:completed, step:m:completed, run:completed',
  'so are those that complete in one call'
);

-- Skips, empty maps, starts.

select pg_temp.compile(
  'mixed', 'step',
  jsonb_build_array(
    pg_temp.step('list'),
    pg_temp.map('empty', 'list'),
    pg_temp.map('of_empty', 'empty'),
    pg_temp.step('unmet', 'list', pg_temp.only_if('{"list": [1]}', 'skip-cascade')),
    pg_temp.step('below', 'unmet'),
    pg_temp.step('starts', 'list')
  )
);
select pg_temp.start('mixed', 'mixed');
select pg_temp.work('mixed', 'list', '[]');
create temporary table place as
select sent.event, row_number() over (order by sent.number) as nth
from realtime.sent
where sent.topic = 'pgflow:run:' || pg_temp.id('mixed');
select is(
  (select array_agg(event order by nth) from place where nth <= 3), array['run:started', 'step:list:started', 'step:list:completed'],
  'a completion comes before all that it causes'
);
select is(
  (select array_agg(event order by event) from place where nth between 4 and 7),
  array['step:below:skipped', 'step:empty:completed', 'step:of_empty:completed', 'step:unmet:skipped'],
  'then skips and empty maps'
);
select is(
  (select array_agg(event order by nth) from place where event in ('step:unmet:skipped', 'step:below:skipped')),
  array['step:unmet:skipped', 'step:below:skipped'],
  'a cascade comes after its cause'
);
select is(
  (select array_agg(event order by nth) from place where event in ('step:empty:completed', 'step:of_empty:completed')),
  array['step:empty:completed', 'step:of_empty:completed'],
  'a map of an empty map after that one'
);
select is((select event from place where nth = 8), 'step:starts:started', 'and starts after them');
select pg_temp.work('mixed', 'starts');
select matches(pg_temp.events('mixed'), 'step:starts:completed, run:completed$', 'the end of the run is last');

-- A run that is complete when it starts.

select pg_temp.compile('void', 'flow', jsonb_build_array(pg_temp.map('a'), pg_temp.map('b', 'a')));
select pg_temp.start('void', 'void', '[]');
select is(
  pg_temp.events('void'), 'run:started, step:a:completed, step:b:completed, run:completed', 'empty maps complete without a start'
);

-- A run that fails.

select pg_temp.compile(
  'fails', 'step',
  jsonb_build_array(
    pg_temp.step('a'), pg_temp.step('b', '', pg_temp.options(max_attempts => 1)), pg_temp.step('gate', 'a', pg_temp.only_if('{"a": 1}', 'fail'))
  )
);
select pg_temp.start('fails', 'handler');
select pg_temp.spoil('fails', 'b');
select is(
  pg_temp.events('handler'), 'run:started, step:a:started, step:b:started, step:b:failed, run:failed', 'a step fails before its run'
);
select pg_temp.start('fails', 'condition');
select pg_temp.work('fails', 'a', '2');
select is(
  pg_temp.events('condition'), 'run:started, step:a:started, step:b:started, step:a:completed, step:gate:failed, run:failed',
  'a condition that fails a run comes after the completion that it judges'
);

-- One call over two runs: each in its own order.

select pg_temp.start('chain', 'one'), pg_temp.start('chain', 'two');
select pg_temp.drain('chain');
select is(
  array[pg_temp.events('one'), pg_temp.events('two')], array[pg_temp.events('chain'), pg_temp.events('chain')],
  'runs that go on in one call send the same events as one alone'
);

select * from finish();
rollback;
