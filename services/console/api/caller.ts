import { computed, signal } from '@preact/signals'
import type { Schema } from '../../../shared/client/api.ts'
import { ofTab } from '../base/tab.ts'

export type Caller = Schema<'MeResponse'>

/** The person who is signed in, the scopes of the token and the features of the server. */
export const caller = ofTab(() => signal<Caller | undefined>(undefined))

/** Whether the token allows an action. The server decides; the console only hides actions that the server would refuse. */
export const may = (scope: Schema<'Scope'>): boolean => caller().value?.scopes.includes(scope) ?? false

export const has = (feature: string): boolean => caller().value?.features[feature] ?? false

/** The reason why nothing can be started, or undefined. */
export const canRun = ofTab(() => computed(() => may('run')))
