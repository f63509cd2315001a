import type { Schema } from '../../../../shared/client/api.ts'

export type Plan = Schema<'Plan'>
