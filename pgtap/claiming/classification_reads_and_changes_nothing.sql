begin;
\ir helpers.psql

select plan(23);

select pg_temp.compile(
  'f', 'step', jsonb_build_array(pg_temp.map('a'), pg_temp.step('b', more => pg_temp.options(max_attempts => 1)))
);
select pg_temp.compile('g', 'flow', jsonb_build_array(pg_temp.step('a'), pg_temp.step('b')));
select pg_temp.start('f', 'r', '["zero", "one", "two", "three", "four", "five"]');

create function pg_temp.class(msg_ids bigint[], step_slug text default 'a')
returns setof text
language sql
as $$
  select concat_ws(' ', message.msg_id, message.class, message.run_id = pg_temp.id('r'), message.step_slug, message.task_index)
  from pgflow.classify_messages('f__a', 'f', class.step_slug, class.msg_ids) as message
$$;

select results_eq(
  'select pg_temp.class(array[1])',
  array['1 claimable t a 0'],
  'a queued task of a started step of a started run is claimable'
);

select is(
  (select count(*) from pg_temp.claim_messages('f', 'a', array[2, 3])), 2::bigint, 'two tasks are started'
);
select results_eq('select pg_temp.class(array[2])', array['2 started t a 1'], 'a started task is started');

select pgmq.set_vt('f__a', 2, 0);
select results_eq(
  'select pg_temp.class(array[2])', array['2 started t a 1'],
  'a message that came back to sight changes nothing about its task'
);

select pgmq.set_vt('f__a', 1, 3600);
select results_eq('select pg_temp.class(array[1])', array['1 claimable t a 0'], 'nor does one that is hidden');

select pgflow.complete_task(pg_temp.id('r'), 'a', 2, '{}');
select results_eq(
  'select pg_temp.class(array[3])', array['3 terminal t a 2'],
  'a completed task is terminal, though its message has left'
);
select pg_temp.put_back('f__a', 3);
select results_eq('select pg_temp.class(array[3])', array['3 terminal t a 2'], 'and when its message is back');

select results_eq(
  'select pg_temp.class(array[99, 0, -1])', array['99 gone', '0 gone', '-1 gone'], 'ids that nothing has are gone'
);

select pg_temp.lose_message('f__a', 4);
select results_eq('select pg_temp.class(array[4])', array['4 gone t a 3'], 'so is the lost message of a queued task');

select is(pgmq.send('f__a', '{"password": "hunter2"}'), 7::bigint, 'a stranger sends a message');
select results_eq('select pg_temp.class(array[7])', array['7 unsupported'], 'a message without a task is unsupported');

select is(
  pgmq.send(
    'f__a', jsonb_build_object('flow_slug', 'f', 'run_id', pg_temp.id('r'), 'step_slug', 'a', 'task_index', 0)
  ),
  8::bigint,
  'a stranger copies the body of a real one'
);
select results_eq('select pg_temp.class(array[8])', array['8 unsupported'], 'the body names no task');

update pgmq.q_f__a
set message = '{"flow_slug": "g", "step_slug": "b"}'
where msg_id = 1;
select results_eq(
  'select pg_temp.class(array[1])', array['1 claimable t a 0'],
  'nor does it take one away: queue and id alone name the task'
);

select results_eq(
  $$select pg_temp.class(array[1, 2, 3, 99], 'b')$$,
  array['1 unsupported t a 0', '2 unsupported t a 1', '3 unsupported t a 2', '99 gone'],
  'to another step the tasks are unsupported, ended ones too while their message is there'
);

select results_eq(
  $$select message.class from pgflow.classify_messages('f__a', 'F', 'a', array[1]) as message$$,
  array['unsupported'],
  'slugs are compared as they are written'
);

select pg_temp.start('g', 's');
select pg_temp.start('g', 's2');
select results_eq(
  $$
    select message.msg_id, message.class, message.step_slug
    from pgflow.classify_messages('g', 'g', null, array[2, 1, 3]) as message
  $$,
  $$values (2::bigint, 'claimable', 'b'), (1, 'claimable', 'a'), (3, 'claimable', 'a')$$,
  'a null step takes every step of a flow-mode flow'
);

select results_eq(
  'select pg_temp.class(array[99, 2, null, 1, 2, 99, null]::bigint[])',
  array['99 gone', '2 started t a 1', '1 claimable t a 0'],
  'one row a distinct id, in the order of their first place; nulls are left out'
);

select is_empty('select pg_temp.class(null)', 'a null array has no rows');
select is_empty($$select pg_temp.class('{}')$$, 'an empty array has no rows');
select is_empty('select pg_temp.class(array[null, null]::bigint[])', 'an array of nulls has no rows');

select results_eq(
  $$
    select provolatile::text
    from pg_proc
    where oid = 'pgflow.classify_messages(text, text, text, bigint[])'::regprocedure
  $$,
  array['s'],
  'classification is declared to change nothing'
);

select throws_ok(
  $$select * from pgflow.classify_messages('F__a', 'f', 'a', array[1])$$,
  'PF019', null,
  'a queue that does not exist is named as such'
);

select *
from finish();
rollback;
