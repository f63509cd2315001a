/** A document in MongoDB: its indexed fields, and the whole document as text, so that MongoDB never interprets its keys. `body` is a text beside it. */
export type Row = {
  tenant: string
  version: number
  doc: string
  body?: string
  expires_at?: Date
  [field: string]: unknown
}
