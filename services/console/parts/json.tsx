import { showJson } from '../../../shared/reading/hidden.ts'

/** A value as indented JSON. It is shown as text: nothing in it becomes HTML, and invisible characters are made visible. */
export const Json = ({ value }: { value: unknown }) => <pre class="code">{showJson(value, 2)}</pre>
