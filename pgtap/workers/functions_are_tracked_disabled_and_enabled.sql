begin;
\ir helpers.psql

select plan(14);

select lives_ok($$select pgflow.track_worker_function('fn')$$, 'a function makes itself known');
select results_eq(
  $$select enabled, start_mode, debounce, last_invoked_at is not null from pgflow.worker_functions$$,
  $$values (true, 'http', interval '6 seconds', true)$$,
  'it is enabled, started over HTTP, and was just started'
);

-- Disabled.
update pgflow.worker_functions set updated_at = '2026-01-01 00:00:00+00';
select results_eq(
  $$
    select function_name, enabled, disabled_reason, disabled_at is not null
    from pgflow.disable_worker_function('fn', 'it spoils orders')
  $$,
  $$values ('fn', false, 'it spoils orders', true)$$,
  'disabling returns the row with time and reason'
);
select pgflow.track_worker_function('fn');
select results_eq(
  $$select enabled, disabled_reason, start_mode from pgflow.worker_functions$$,
  $$values (false, 'it spoils orders', 'http')$$,
  'tracking it again leaves it disabled'
);
update pgflow.worker_functions set disabled_at = '2026-01-01 00:00:00+00';
select pgflow.disable_worker_function('fn', 'something else too');
select results_eq(
  $$select enabled, disabled_reason, disabled_at > '2026-01-01 00:00:00+00' from pgflow.worker_functions$$,
  $$values (false, 'something else too', true)$$,
  'a later disable is on record'
);

-- Enabled.
select results_eq(
  $$select enabled, disabled_at, disabled_reason from pgflow.enable_worker_function('fn')$$,
  $$values (true, null::timestamptz, null::text)$$,
  'enabling clears time and reason'
);
select lives_ok($$select pgflow.enable_worker_function('fn')$$, 'and can be done twice');

-- Refusals.
select results_eq(
  $outer$select * from pg_temp.refusal($$select pgflow.disable_worker_function('fun', 'why not')$$)$outer$,
  $$
    values (
      'PF018',
      'Worker function "fun" is not known.',
      'Known functions: fn.',
      'A function becomes known when a worker of it registers, or by pgflow.track_worker_function().'
    )
  $$,
  'an unknown function can''t be disabled'
);
select throws_ok(
  $$select pgflow.enable_worker_function('fun')$$, 'PF018', 'Worker function "fun" is not known.', 'nor enabled'
);
select throws_ok($$select pgflow.enable_worker_function(null)$$, 'PF018', null, 'nor one without a name');
select throws_ok(
  $$select pgflow.disable_worker_function('fn', null)$$,
  'PF019', 'Worker function "fn" can''t be disabled without a reason.', 'disabling needs a reason'
);
select throws_ok($$select pgflow.disable_worker_function('fn', ' ')$$, 'PF019', null, 'that says something');
select results_eq(
  $$select enabled, disabled_reason from pgflow.worker_functions$$, $$values (true, null::text)$$, 'else nothing changes'
);

-- A process function that is tracked stays what it is.
select pg_temp.step_flow('f', 'a');
select pgflow.register_worker(pg_temp.id('w'), 'mine', 'f', 'a');
select pgflow.track_worker_function('mine');
select is(
  (select start_mode from pgflow.worker_functions where function_name = 'mine'), 'process', 'tracking keeps the start mode'
);

select * from finish();
rollback;
