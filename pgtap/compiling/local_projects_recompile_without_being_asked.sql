begin;
\ir helpers.psql
select plan(9);

select is(pgflow.is_local(), false, 'without the setting this is no local project');
select from set_config('app.settings.jwt_secret', 'a-secret-of-production', true);
select is(pgflow.is_local(), false, 'nor with another secret');
select from pg_temp.status('f', pg_temp.shape(pg_temp.step('a')), 'step');
select is(pg_temp.status('f', pg_temp.shape(pg_temp.step('b')), 'step'), 'mismatch', 'there a difference is told');
select from set_config('app.settings.jwt_secret', 'super-secret-jwt-token-with-at-least-32-characters-long', true);
select is(pgflow.is_local(), true, 'the secret of the local command line tools marks a local project');
select is(
  pg_temp.status('f', pg_temp.shape(pg_temp.step('b')), 'step'),
  'recompiled',
  'there a difference leads to recompilation'
);
select is(pg_temp.status('f', pg_temp.shape(pg_temp.step('b')), 'step'), 'verified', 'once');
select is(pg_temp.status('f', pg_temp.shape(pg_temp.step('b')), 'flow'), 'recompiled', 'and so does another mode');
select pgmq.create('f__c');
select throws_ok(
  $$ select pgflow.ensure_flow_compiled('f', pg_temp.shape(pg_temp.step('c')), false, 'step') $$,
  'PF004', null, 'queues of others are safe there, too'
);
select from set_config('app.settings.jwt_secret', '', true);
select is(pgflow.is_local(), false, 'an empty setting is none');

select * from finish();
rollback;
