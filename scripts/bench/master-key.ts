import { createHash } from 'node:crypto'

/** The MASTER_KEY of the products that figures start. */
export const MASTER_KEY = createHash('sha256').update('bench').digest('base64')
