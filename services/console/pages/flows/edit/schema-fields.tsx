import type { JsonObject } from '../../../base/json-value.ts'
import { DraftInput } from '../../../parts/draft-input.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { type Property, propertiesOf, renamed, requiring, TYPES, withKeyword, withNew, without } from './schema-edit.ts'

type SchemaFieldsProps = {
  label: string
  schema: JsonObject
  problem?: string | undefined
  onChange(schema: JsonObject): void
}

/** The properties of an object's schema. What has no field here is written in the JSON, and stays as it is. */
export const SchemaFields = ({ label, schema, problem, onChange }: SchemaFieldsProps) => (
  <fieldset class="schema-fields">
    <legend>{label}</legend>
    <ul>
      {propertiesOf(schema).map((property, i) => (
        <Row key={i} property={property} schema={schema} onChange={onChange} />
      ))}
    </ul>
    {problem !== undefined && <span class="problem small">{problem}</span>}
    <button type="button" class="button plain add" onClick={() => onChange(withNew(schema))}>
      <Icon name="plus" /> Add a field
    </button>
  </fieldset>
)

type RowProps = { property: Property; schema: JsonObject; onChange(schema: JsonObject): void }

function Row(props: RowProps) {
  const { property, schema, onChange } = props
  const { name, isRequired, description, choices } = property
  return (
    <li>
      <NameField {...props} />
      <TypeField {...props} />
      <label class="choice small">
        <input
          type="checkbox"
          aria-label={`${name} is required`}
          checked={isRequired}
          onChange={({ currentTarget }) => onChange(requiring(schema, name, currentTarget.checked))}
        />
        required
      </label>
      <button
        type="button"
        class="button plain icon"
        aria-label={`Remove ${name}`}
        onClick={() => onChange(without(schema, name))}
      >
        <Icon name="cross" />
      </button>
      <input
        class="input description"
        aria-label={`Description of ${name}`}
        placeholder="Description: it is shown at the form, and the model reads it"
        value={description}
        onInput={({ currentTarget }) => onChange(withKeyword(schema, name, { description: currentTarget.value }))}
      />
      {choices !== '' && <span class="small soft choices">One of: {choices}</span>}
    </li>
  )
}

const NameField = ({ property: { name }, schema, onChange }: RowProps) => (
  <DraftInput
    label={`Name of ${name}`}
    class="input mono"
    value={name}
    onCommit={(next) => onChange(renamed(schema, name, next))}
  />
)

const TypeField = ({ property: { name, type }, schema, onChange }: RowProps) => (
  <select
    class="input"
    aria-label={`Type of ${name}`}
    value={type}
    onChange={({ currentTarget }) => onChange(withKeyword(schema, name, { type: currentTarget.value }))}
  >
    {type === '' && <option value="">any</option>}
    {TYPES.map((each) => (
      <option key={each}>{each}</option>
    ))}
  </select>
)
