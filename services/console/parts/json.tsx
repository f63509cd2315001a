import { showJson } from '../../../shared/reading/hidden.ts'

/** A value as indented JSON. It is text: nothing in it becomes part of the page, and nothing in it is hidden. */
export const Json = ({ value }: { value: unknown }) => <pre class="code">{showJson(value, 2)}</pre>
