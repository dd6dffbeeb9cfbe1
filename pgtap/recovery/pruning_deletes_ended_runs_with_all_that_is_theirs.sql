-- Archives only grow, unless something prunes them.
begin;
\ir ../workers/helpers.psql

select plan(19);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.map('a'), pg_temp.step('b', 'a', pg_temp.options(max_attempts => 1))));
select pg_temp.compile('Plain', 'flow', jsonb_build_array(pg_temp.step('a')));
select pg_temp.start('f', 'old', '[1, 2]');
select pg_temp.start('f', 'failed', '[1, 2]');
select pg_temp.drain('f', '{}', 3);
select pg_temp.start('Plain', 'old plain');
select pg_temp.start('Plain', 'new plain');
select pg_temp.drain('Plain');
select pg_temp.start('f', 'broken', '[]');
select pg_temp.spoil('f', 'b');
select pg_temp.start('f', 'going', '[1]');

-- All but two of the ended runs ended long ago.
update pgflow.runs
set
  started_at = started_at - interval '40 days',
  completed_at = completed_at - interval '40 days',
  failed_at = failed_at - interval '40 days'
where run_id in (pg_temp.id('old'), pg_temp.id('failed'), pg_temp.id('old plain'), pg_temp.id('broken'));

create function pg_temp.prune(retention interval, batch_size int default 1000)
returns text
language sql
as $$
  select string_agg(what || ' ' || deleted, ', ') from pgflow.prune_data_older_than(retention, batch_size)
$$;

create function pg_temp.kept()
returns text
language sql
as $$
  select string_agg(name, ', ' order by name)
  from unnest(array['old', 'failed', 'old plain', 'new plain', 'broken', 'going']) as known (name)
  inner join pgflow.runs as run on run.run_id = pg_temp.id(known.name)
$$;

select is((select count(*) from pg_temp.archived('f')), 7::bigint, 'seven messages of ended tasks are in the archives');

select is(
  pg_temp.prune('41 days'), 'workers 0, runs 0, step_states 0, step_tasks 0, messages 0', 'what is young enough stays'
);
select is(
  pg_temp.prune('30 days'), 'workers 0, runs 4, step_states 7, step_tasks 8, messages 8', 'what is older goes, counted by kind'
);
select is(pg_temp.kept(), 'going, new plain', 'runs in progress stay, and those that ended lately');
select is(
  pg_temp.prune('30 days'), 'workers 0, runs 0, step_states 0, step_tasks 0, messages 0', 'there is nothing left to do'
);
select is_empty($$select * from pg_temp.archived('f')$$, 'the archives of the flow are empty, on every queue');
select is((select count(*) from pg_temp.archived('Plain')), 1::bigint, 'the message of the run that stays is in its archive');
select is(pg_temp.steps('going'), 'a started, b created', 'the run in progress is as it was');
select is_empty('select * from pgflow.check_integrity()', 'and everything is sound');
select is(pg_temp.drain('f'), 2, 'it can be finished');
select pg_temp.nothing_left('f', 'and leaves nothing behind');

-- In batches.
select pg_temp.start('Plain', 'x' || number) from generate_series(1, 5) as number;
select pg_temp.drain('Plain');
update pgflow.runs
set started_at = started_at - interval '1 year', completed_at = completed_at - interval '1 year'
where flow_slug = 'Plain';
select results_eq(
  $$select pg_temp.prune('30 days', 4) from generate_series(1, 3)$$,
  $$
    values
    ('workers 0, runs 4, step_states 4, step_tasks 4, messages 4'),
    ('workers 0, runs 2, step_states 2, step_tasks 2, messages 2'),
    ('workers 0, runs 0, step_states 0, step_tasks 0, messages 0')
  $$,
  'a batch at a time, until all counts are 0'
);

-- Messages that never reached the archive, and queues that are gone.
select pg_temp.start('Plain', 'left');
select pg_temp.drain('Plain');
insert into pgmq.q_plain (msg_id, vt, message)
overriding system value
select msg_id, now(), message
from pgmq.a_plain;
select is(
  pg_temp.prune('0'), 'workers 0, runs 2, step_states 3, step_tasks 3, messages 4',
  'a message that is still on the queue of an ended task goes too'
);
select is_empty('select * from pgflow.check_integrity()', 'so that it can''t turn into unsupported work');
select pg_temp.start('f', 'last', '[1]');
select pg_temp.drain('f');
select pgmq.drop_queue('f__a');
select is(
  pg_temp.prune('0'), 'workers 0, runs 1, step_states 2, step_tasks 2, messages 1', 'a queue that somebody dropped is passed over'
);

-- Arguments.
select results_eq(
  $outer$select sqlstate, message from pg_temp.refusal($$select pgflow.prune_data_older_than('-1 days')$$)$outer$,
  $$values ('PF019', 'Data can''t be kept for -1 days.')$$,
  'a negative interval is refused'
);
select throws_ok('select pgflow.prune_data_older_than(null)', 'PF019', 'Data can''t be kept for null.', 'and none');
select throws_ok(
  $$select pgflow.prune_data_older_than('1 day', 0)$$, 'PF019', 'A batch of 0 runs can''t be deleted.', 'and an empty batch'
);
select lives_ok($$select pgflow.prune_data_older_than('170000 years')$$, 'an interval longer than history deletes nothing');

select * from finish();
rollback;
