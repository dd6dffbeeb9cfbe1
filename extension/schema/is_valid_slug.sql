create function pgflow.is_valid_slug(slug text)
returns boolean
language sql
immutable
parallel safe
begin atomic
  -- PostgreSQL's $ is the very end: a slug that ends in a line break is not a slug.
  select
    slug is not null
    and length(slug) between 1 and 128
    and slug collate "C" ~ '^[a-zA-Z_][a-zA-Z0-9_]*$'
    and slug <> 'run';
end;

comment on function pgflow.is_valid_slug(text) is
'Whether a text can name a flow or a step: 1 to 128 ASCII letters, digits or underscores, not starting with a digit, and not the word run. Null gives false. The rule is that of pgflow 0.14.';
