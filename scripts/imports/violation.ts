/** One line of the checks' output. */
export type Violation = { file: string; line: number; rule: string }
