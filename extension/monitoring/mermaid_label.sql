create function pgflow.mermaid_label(variadic lines text[])
returns text
language sql
immutable
parallel safe
begin atomic
  select
    -- The number sign first: it begins the codes of the others.
    '"' || string_agg(
      replace(replace(replace(replace(line.content, '#', '#35;'), '"', '#34;'), '<', '#60;'), '>', '#62;'),
      '<br/>'
      order by line.position
    ) || '"'
  from unnest(lines) with ordinality as line (content, position);
end;

comment on function pgflow.mermaid_label(text[]) is
'Internal: lines of text as a quoted Mermaid label, in which nothing is markup but the breaks between them. Null for no text.';
