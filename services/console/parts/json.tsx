/** A value as indented JSON. It is text: nothing in it becomes part of the page. */
export const Json = ({ value }: { value: unknown }) => <pre class="code">{JSON.stringify(value, null, 2)}</pre>
