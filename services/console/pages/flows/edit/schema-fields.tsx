import { useRef } from 'preact/hooks'
import type { JsonObject } from '../../../base/json-value.ts'
import { DraftInput } from '../../../parts/draft-input.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { memo } from '../../../parts/memo.ts'
import { type Property, propertiesOf, renamed, requiring, TYPES, withKeyword, withNew, without } from './schema-edit.ts'

type SchemaFieldsProps = {
  label: string
  schema: JsonObject
  problem?: string | undefined
  onChange(schema: JsonObject): void
}

/** Changes the schema. The function gets the schema at the time of the change. */
type Edit = (change: (schema: JsonObject) => JsonObject) => void

/** The properties of an object's schema. Keywords without a field here can be changed in the JSON only, and are kept. */
export function SchemaFields({ label, schema, problem, onChange }: SchemaFieldsProps) {
  const edit = useEdit(schema, onChange)
  return (
    <fieldset class="schema-fields">
      <legend>{label}</legend>
      <ul>
        {propertiesOf(schema).map((property, i) => (
          <Row key={i} {...property} edit={edit} />
        ))}
      </ul>
      {problem !== undefined && <span class="problem small">{problem}</span>}
      <button type="button" class="button plain add" onClick={() => edit(withNew)}>
        <Icon name="plus" /> Add a field
      </button>
    </fieldset>
  )
}

/** The function stays the same object, so that a key press redraws only one row of hundreds. */
function useEdit(schema: JsonObject, onChange: (schema: JsonObject) => void): Edit {
  const latest = useRef({ schema, onChange })
  latest.current = { schema, onChange }
  return useRef<Edit>((change) => latest.current.onChange(change(latest.current.schema))).current
}

type RowProps = Property & { edit: Edit }

const Row = memo((props: RowProps) => {
  const { name, isRequired, description, choices, edit } = props
  return (
    <li>
      <NameField {...props} />
      <TypeField {...props} />
      <label class="choice small">
        <input
          type="checkbox"
          aria-label={`${name} is required`}
          checked={isRequired}
          onChange={({ currentTarget: { checked } }) => edit((schema) => requiring(schema, name, checked))}
        />
        required
      </label>
      <button
        type="button"
        class="button plain icon"
        aria-label={`Remove ${name}`}
        onClick={() => edit((schema) => without(schema, name))}
      >
        <Icon name="cross" />
      </button>
      <input
        class="input description"
        aria-label={`Description of ${name}`}
        placeholder="Description: it is shown at the form, and the model reads it"
        value={description}
        onInput={({ currentTarget: { value } }) => edit((schema) => withKeyword(schema, name, { description: value }))}
      />
      {choices !== '' && <span class="small soft choices">One of: {choices}</span>}
    </li>
  )
})

const NameField = ({ name, edit }: RowProps) => (
  <DraftInput
    label={`Name of ${name}`}
    class="input mono"
    value={name}
    onCommit={(next) => edit((schema) => renamed(schema, name, next))}
  />
)

const TypeField = ({ name, type, edit }: RowProps) => (
  <select
    class="input"
    aria-label={`Type of ${name}`}
    value={type}
    onChange={({ currentTarget: { value } }) => edit((schema) => withKeyword(schema, name, { type: value }))}
  >
    {type === '' && <option value="">any</option>}
    {TYPES.map((each) => (
      <option key={each}>{each}</option>
    ))}
  </select>
)
