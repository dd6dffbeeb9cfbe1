begin;
\ir helpers.psql

select plan(10);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.map('a')));
select pg_temp.start('f', 'r', '["x", "y", "z"]');

-- Between read and claim somebody deletes a message.
select is(
  (select array_agg(msg_id order by msg_id) from pgmq.read('f__a', 60, 10)), array[1, 2, 3]::bigint[],
  'a client reads three messages'
);
select pgmq.delete('f__a', 2::bigint);

select results_eq(
  $$select msg_id, outcome, reason, attempt, input from pg_temp.claim_messages('f', 'a', array[1, 2, 3])$$,
  $$
    values
    (1::bigint, 'claimed', null, 1, '"x"'::jsonb),
    (2, 'gone', 'the message of this queued task is not in the queue', null, null),
    (3, 'claimed', null, 1, '"z"')
  $$,
  'its id is gone, the others are claimed'
);
select is(pg_temp.attempts('r', 'a'), 'started 1, queued 0, started 1', 'the task without a message loses no attempt');
select is(
  (
    select enabled
    from pgflow.worker_functions
    where function_name = 'f_a'
  ),
  true,
  'and nothing is disabled'
);

select is(
  (select outcome from pg_temp.claim_messages('f', 'a', array[2])), 'gone', 'asked again, the answer is the same'
);

-- Lost after the claim: the worker can still finish.
select pgmq.delete('f__a', 3::bigint);
select is(
  (select outcome from pg_temp.claim_messages('f', 'a', array[3])), 'gone',
  'the lost message of a started task is gone'
);
select is(pg_temp.attempts('r', 'a'), 'started 1, queued 0, started 1', 'and the attempt goes on');
select is(
  (select status from pgflow.complete_task(pg_temp.id('r'), 'a', 2, '"Z"')), 'completed', 'and can be completed'
);

select results_eq(
  $$select outcome from pg_temp.claim_messages('f', 'a', array[3])$$, array['archived'],
  'then the id is one of an ended task'
);
select is(pg_temp.whereabouts('f__a', 3), 'gone', 'and nothing is archived where there is no message');

select *
from finish();
rollback;
