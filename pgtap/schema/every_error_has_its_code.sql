-- Clients branch on SQLSTATE: the list is complete, and nothing raises a code that is not on it.
begin;
\ir ../helpers.psql

select plan(5);

select results_eq(
  'select sqlstate from pgflow.error_codes order by sqlstate',
  $$select 'PF' || lpad(number::text, 3, '0') from generate_series(1, 20) as number$$,
  'the codes are PF001 to PF020'
);
select is_empty(
  $$select * from pgflow.error_codes where coalesce(condition, '') = '' or coalesce(meaning, '') = ''$$,
  'each with its condition and its meaning'
);
select is(
  (select count(distinct condition) from pgflow.error_codes), 20::bigint, 'and no condition twice'
);

create temporary table raised as
select procedure.oid::regprocedure::text as function, code.found[1] as code
from pg_proc as procedure
cross join lateral regexp_matches(pg_get_functiondef(procedure.oid), '''(PF[0-9A-Z]{3})''', 'g') as code (found)
where procedure.pronamespace = 'pgflow'::regnamespace;
select is_empty(
  'select function, code from raised where code not in (select sqlstate from pgflow.error_codes)',
  'no function raises a code that is not on the list'
);
select isnt_empty($$select * from raised where code = 'PF018'$$, 'and functions do raise codes');

select * from finish();
rollback;
