begin;
\ir helpers.psql
select plan(11);

select pg_temp.compile(
  'steps',
  'step',
  jsonb_build_array(pg_temp.step('a'), pg_temp.step('b', 'a', pg_temp.only_if('{"x": 1}')))
);
select pg_temp.compile(
  'Plain',
  'flow',
  jsonb_build_array(pg_temp.step('a'), pg_temp.step('b', 'a'), pg_temp.step('c', 'b,a'))
);
select pg_temp.start('steps', 'run');

create temporary table before on commit drop as select pg_temp.footprint() as footprint;

select is(
  pg_temp.status(
    'steps',
    pg_temp.shape(pg_temp.step('a'), pg_temp.step('b', 'a', pg_temp.only_if('{"x": 1}'))),
    'step'
  ),
  'verified', 'an equal step-mode flow is verified'
);
select is(
  pg_temp.status('Plain', pg_temp.shape(pg_temp.step('a'), pg_temp.step('b', 'a'), pg_temp.step('c', 'b,a'))),
  'verified', 'an equal flow-mode flow is verified'
);
select is(
  pg_temp.status('Plain', pg_temp.shape(pg_temp.step('a'), pg_temp.step('b', 'a'), pg_temp.step('c', 'a,b,a'))),
  'verified', 'dependencies are compared as sets'
);
select is(
  pg_temp.status(
    'Plain',
    '{"steps": [{"slug": "a"}, {"slug": "b", "dependencies": ["a"]}, {"slug": "c", "dependencies": ["a", "b"]}]}'
  ),
  'verified', 'keys that are left out are equal to their defaults'
);
select is(
  pg_temp.status(
    'Plain',
    pg_temp.shape(pg_temp.step('a', '', pg_temp.options(9, 9, 9, 9)), pg_temp.step('b', 'a'), pg_temp.step('c', 'b,a'))
    || '{"options": {"maxAttempts": 9, "baseDelay": 9, "timeout": 9}}'
  ),
  'verified', 'options are no part of the shape'
);
select is(
  pg_temp.status(
    'Plain',
    pg_temp.shape(pg_temp.step('a'), pg_temp.step('b', 'a'), pg_temp.step('c', 'b,a')),
    'flow',
    true
  ),
  'verified', 'where data may be lost, an equal flow is verified just the same'
);
select is(
  pg_temp.status('Plain', pg_temp.shape(pg_temp.step('a'), pg_temp.step('b', 'a'))),
  'mismatch', 'a mismatch is told'
);
select is(pg_temp.footprint(), (select footprint from before), 'not a row was written or locked by any of this');

-- What a verification and a mismatch tell: what is persisted.

select is(
  pgflow.ensure_flow_compiled('steps', pg_temp.shape(pg_temp.step('a')), false, 'flow') - 'differences',
  '{
    "status": "mismatch",
    "queue_mode": "step",
    "routes": [{"step_slug": "a", "queue_name": "steps__a"}, {"step_slug": "b", "queue_name": "steps__b"}],
    "uncovered": []
  }',
  'mode and routes are those that are persisted'
);
select is(
  (pg_temp.flow('Plain')).opt_max_attempts,
  3,
  'options of an existing flow stay as they are'
);

select ok(
  exists (
    select
    from pg_locks as lock
    where lock.pid = pg_backend_pid()
      and lock.locktype = 'advisory'
      and lock.granted
      and ((lock.classid::bigint << 32) | lock.objid::bigint) = hashtextextended('pgflow.flow Plain', 0)
  ),
  'one advisory lock on the exact slug is held'
);

select * from finish();
rollback;
