begin;
\ir ../workers/helpers.psql

select plan(8);

select pgflow.ensure_flow_compiled(
  'threadsV1',
  pg_temp.shape(
    pg_temp.step('classify', more => pg_temp.unless('{"draft": true}', 'skip-cascade')),
    pg_temp.step('deliverSlack', 'classify', pg_temp.only_if('{"classify": {"route": "help"}}')),
    pg_temp.map('digest', 'classify'),
    pg_temp.step('close', 'digest,deliverSlack', pg_temp.only_if('{}', 'fail') || pg_temp.unless('{"a": 1}', 'fail'))
  ),
  false,
  'step'
);
select is(
  pgflow.flow_diagram('threadsV1'),
  concat_ws(
    e'\n',
    'flowchart LR',
    '  s0["classify<br/>threadsv1__classify"]',
    '  s1["deliverSlack<br/>threadsv1__deliverslack"]',
    '  s2[["digest (map)<br/>threadsv1__digest"]]',
    '  s3["close<br/>threadsv1__close"]',
    '  input(["input"]) -->|"ifNot, else skip-cascade"| s0',
    '  s0 -->|"if, else skip"| s1',
    '  s0 --> s2',
    '  s1 -->|"if and ifNot, else fail"| s3',
    '  s2 -->|"if and ifNot, else fail"| s3'
  ),
  'steps in order with type and queue, an edge a dependency, conditions on the edges'
);

select pg_temp.plain_flow('Plain', 'a', 'b');
select is(
  pgflow.flow_diagram('Plain'),
  concat_ws(e'\n', 'flowchart LR', '  s0["a<br/>plain"]', '  s1["b<br/>plain"]'),
  'steps of a flow-mode flow show the one queue'
);

select pgflow.ensure_flow_compiled('empty', '{"steps": []}');
select is(pgflow.flow_diagram('empty'), 'flowchart LR', 'a flow without steps is an empty chart');

select throws_ok(
  $$select pgflow.flow_diagram('plain')$$, 'PF018', 'Flow "plain" is not known.', 'an unknown flow is refused'
);
select throws_ok($$select pgflow.flow_diagram(null)$$, 'PF018', null, 'and none at all');

select is(
  pgflow.mermaid_label('a "b"', '<script>#35;</script>'),
  '"a #34;b#34;<br/>#60;script#62;#35;35;#60;/script#62;"',
  'nothing in a label is markup'
);
select is(pgflow.mermaid_label('a', null, 'b'), '"a<br/>b"', 'a line that is not there is left out');

-- Slugs that are words of Mermaid's.
select pg_temp.step_flow('graph', 'end', 'subgraph', 'click');
select alike(pgflow.flow_diagram('graph'), '%s0["end<br/>graph__end"]%', 'slugs are never used as names of nodes');

select * from finish();
rollback;
