import { type Path, pointerOf } from '../../../base/json-value.ts'
import { Field } from '../../../parts/field.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { Area } from '../../../parts/text-area.tsx'
import { type InputProblem, type Raw, rawOf } from './input-form.ts'
import type { Asked, Spec } from './input-spec.ts'

type Common = {
  path: Path
  problems: readonly InputProblem[]
  /** `undefined` takes an item out of its list. */
  onChange(path: Path, raw: Raw | undefined): void
}

type FieldsProps = Common & { fields: readonly Asked[]; raw: Raw }

/** The fields of an object, in the order of its schema. Required fields have a star. */
export const Fields = ({ fields, raw, path, ...common }: FieldsProps) => (
  <div class="stack">
    {fields.map(({ name, isRequired, spec }) => (
      <Value
        key={name}
        label={isRequired ? `${name} *` : name}
        spec={spec}
        raw={typeof raw === 'object' && !Array.isArray(raw) ? ((raw as Record<string, Raw>)[name] ?? '') : ''}
        path={[...path, name]}
        {...common}
      />
    ))}
  </div>
)

type ValueProps = Common & { label: string; spec: Spec; raw: Raw }

function Value(props: ValueProps) {
  const { label, spec, raw, path, problems, onChange } = props
  const problem = problems.find(({ pointer }) => pointer === pointerOf(path))?.message
  if (spec.kind === 'list') return <List {...props} spec={spec} problem={problem} />
  if (spec.kind === 'object')
    return (
      <fieldset class="group">
        <legend>{label}</legend>
        {spec.description !== '' && <p class="small soft">{spec.description}</p>}
        <Fields fields={spec.fields} raw={raw} path={path} problems={problems} onChange={onChange} />
        {problem !== undefined && <span class="problem small">{problem}</span>}
      </fieldset>
    )
  return (
    <Field label={label} hint={spec.description === '' ? undefined : spec.description} problem={problem}>
      {(id) => <Control {...props} id={id} raw={typeof raw === 'string' ? raw : ''} isWrong={problem !== undefined} />}
    </Field>
  )
}

type ControlProps = ValueProps & { id: string; raw: string; isWrong: boolean }

function Control({ id, spec, raw, path, isWrong, onChange }: ControlProps) {
  const common = {
    id,
    value: raw,
    'aria-invalid': isWrong,
    onInput: ({ currentTarget }: { currentTarget: { value: string } }) => onChange(path, currentTarget.value),
  }
  switch (spec.kind) {
    case 'choice':
      return <Select {...common} choices={spec.choices.map((choice) => [JSON.stringify(choice), textFor(choice)])} />
    case 'boolean':
      return (
        <Select
          {...common}
          choices={[
            ['true', 'yes'],
            ['false', 'no'],
          ]}
        />
      )
    case 'number':
    case 'integer':
      return <input {...common} class="input" type="text" inputMode="decimal" autocomplete="off" />
    case 'json':
      return <Area {...common} class="input mono" rows={4} spellcheck={false} placeholder="JSON" />
    case 'text':
    case 'list':
    case 'object':
      return <Area {...common} class="input" rows={raw.length > 80 || raw.includes('\n') ? 6 : 2} />
  }
}

const textFor = (choice: unknown) => (typeof choice === 'string' ? choice : JSON.stringify(choice))

type SelectProps = {
  id: string
  value: string
  'aria-invalid': boolean
  choices: readonly (readonly [value: string, text: string])[]
  onInput(event: { currentTarget: { value: string } }): void
}

const Select = ({ choices, ...common }: SelectProps) => (
  <select {...common} class="input">
    <option value="">not given</option>
    {choices.map(([value, text]) => (
      <option key={value} value={value}>
        {text}
      </option>
    ))}
  </select>
)

type ListProps = ValueProps & { spec: Spec & { kind: 'list' }; problem: string | undefined }

function List({ label, spec, raw, path, problems, problem, onChange }: ListProps) {
  const items = Array.isArray(raw) ? (raw as readonly Raw[]) : []
  return (
    <fieldset class="group">
      <legend>{label}</legend>
      {spec.description !== '' && <p class="small soft">{spec.description}</p>}
      {items.map((item, i) => (
        <div key={i} class="item">
          <Value
            label={String(i + 1)}
            spec={spec.item}
            raw={item}
            path={[...path, i]}
            problems={problems}
            onChange={onChange}
          />
          <button
            type="button"
            class="button plain icon"
            aria-label={`Remove ${label} ${i + 1}`}
            onClick={() => onChange([...path, i], undefined)}
          >
            <Icon name="cross" />
          </button>
        </div>
      ))}
      <button type="button" class="button plain add" onClick={() => onChange(path, [...items, rawOf(spec.item)])}>
        <Icon name="plus" /> Add to {label.replace(/ \*$/, '')}
      </button>
      {problem !== undefined && <span class="problem small">{problem}</span>}
    </fieldset>
  )
}
