/** One step of a plan (D5.4). */
export type PlanStep = {
  id: string
  prompt: string
  title?: string
  depends_on?: string[]
  writes?: string[]
  idempotent?: boolean
  /** Files of the tenant that the step reads. */
  attachments?: { file_id: string }[]
}

export type Plan = { title?: string; steps: PlanStep[]; parallel?: boolean }
