/** One line of the checks' output. A question is shown and fails nothing. */
export type Violation = { file: string; line: number; rule: string; isQuestion?: true }
