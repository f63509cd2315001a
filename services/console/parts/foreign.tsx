import { escapeHidden, showControls } from '../../../shared/reading/hidden.ts'

/** A name or a title that a model, a tool or a tenant has chosen, as one line, with invisible characters made visible. */
export const Line = ({ text }: { text: string | null | undefined }) => <>{text ? showControls(text) : ''}</>

/** Text of several lines in which nothing is hidden. */
export const Lines = ({ text }: { text: string }) => <>{escapeHidden(text)}</>
