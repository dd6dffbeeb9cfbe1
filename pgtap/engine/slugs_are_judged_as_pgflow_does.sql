begin;
select plan(4);

select is(
  (
    select array_agg(slug)
    from unnest(array['a', '_', 'A', 'a1', '_9', 'Run', 'runs', 'RUN', 'communityThreadsV1', 'a__b', repeat('x', 128)]) as slug
    where not pgflow.is_valid_slug(slug)
  ),
  null,
  'letters, digits and underscores make a slug, up to 128 of them'
);
select is(
  (
    select array_agg(quote_literal(slug))
    from unnest(
      array[
        '', '1', '1a', 'run', 'a-b', 'a b', 'a.b', ' a', 'a ', e'a\n', e'\na', e'a\nb', e'a\r', e'a\t', 'ä', 'straße', 'aé', 'ａ', 'a''b',
        'a"b', 'a;b', 'a%I', 'a\', 'a$', repeat('x', 129), null
      ]
    ) as slug
    where pgflow.is_valid_slug(slug) is distinct from false
  ),
  null,
  'anything else does not, a trailing line break least of all, nor the word run; NULL gives false'
);
select is(
  (select array_agg(chr(code)) from generate_series(1, 3000) as code where pgflow.is_valid_slug(chr(code))),
  (select array_agg(letter order by letter collate "C") from regexp_split_to_table('ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz', '') as letter),
  'of single characters these are slugs'
);
select is(
  (
    select array_agg(chr(code))
    from generate_series(1, 3000) as code
    where pgflow.is_valid_slug('a' || chr(code))
      and chr(code) !~ '[A-Za-z0-9_]'
  ),
  null,
  'no other character may stand in one'
);

select * from finish();
rollback;
