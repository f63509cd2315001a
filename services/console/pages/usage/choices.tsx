import { setFilters } from '../../base/router.ts'
import { DraftInput } from '../../parts/draft-input.tsx'
import { SPANS, spanOf } from './spans.ts'

/** The dimensions by which the API divides, two at a time. */
const BY = ['model', 'kind', 'flow', 'customer', 'subject'] as const
const METADATA = 'metadata'

/** What the page shows is in its address, under the names of the API. */
export function Choices({ by, span }: { by: string; span: keyof typeof SPANS }) {
  const [division = '', second = ''] = by.split(',')
  const [first = '', pair] = division.split('.')
  const choose = (one: string, other: string) =>
    setFilters({ by: one === METADATA ? `${METADATA}.` : [one, other === one ? '' : other].filter(Boolean).join(',') })
  return (
    <>
      <Choice name="by" value={first} choices={[...BY, METADATA]} onChoose={(one) => choose(one, second)}>
        {(each) => `By ${each}`}
      </Choice>
      {pair === undefined ? (
        <Choice
          name="and"
          value={second}
          choices={['', ...BY.filter((each) => each !== first)]}
          onChoose={(other) => choose(first, other)}
        >
          {(each) => (each === '' ? 'and by nothing else' : `and by ${each}`)}
        </Choice>
      ) : (
        <DraftInput
          label="name of the metadata"
          class="input metadata-name"
          placeholder="Its name, such as team"
          value={pair}
          onCommit={(text) => setFilters({ by: `${METADATA}.${text}` })}
        />
      )}
      <Choice name="span" value={span} choices={Object.keys(SPANS)} onChoose={(each) => setFilters({ span: each })}>
        {(each) => SPANS[spanOf(each)].label}
      </Choice>
    </>
  )
}

type ChoiceProps = {
  name: string
  value: string
  choices: readonly string[]
  onChoose(choice: string): void
  children(choice: string): string
}

const Choice = ({ name, value, choices, onChoose, children }: ChoiceProps) => (
  <select class="input" aria-label={name} value={value} onChange={({ currentTarget }) => onChoose(currentTarget.value)}>
    {choices.map((choice) => (
      <option key={choice} value={choice}>
        {children(choice)}
      </option>
    ))}
  </select>
)
