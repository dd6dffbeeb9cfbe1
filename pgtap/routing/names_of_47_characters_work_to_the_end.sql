begin;
\ir helpers.psql
select plan(7);

select is(
  pg_temp.status(repeat('F', 44), pg_temp.shape(pg_temp.step('s')), 'step'),
  'compiled',
  'a step queue of 47 characters is made'
);
select is((select max(length(queue_name)) from pgflow.queues), 47, 'with its full name');
select is(pgmq.send(repeat('f', 44) || '__s', '{"n": 1}'), 1::bigint, 'it can be sent to');
select is((select message from pgmq.read(repeat('f', 44) || '__s', 0, 1)), '{"n": 1}'::jsonb, 'it can be read');
select ok(pgmq.archive(repeat('f', 44) || '__s', 1::bigint), 'it can be archived from');
select lives_ok(format('select pgflow.delete_flow_and_data(%L)', repeat('F', 44)), 'the flow can be deleted');
select is(pg_temp.pgmq_has('%'), 'nothing', 'and nothing of the queue is left');

select * from finish();
rollback;
