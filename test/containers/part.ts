import type { World } from './world.ts'

/** A part of `npm run deploy:test`: a promise, and what throws when it is broken. The parts run in their order, on one cluster. */
export type Part = { promise: string; run(world: World): Promise<void> }
