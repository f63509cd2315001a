import { AppError, invalidRequest, notFound } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/events.ts'
import { findBuiltIn } from './built-in.ts'
import type { Flow } from './port.ts'

const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** Throws unless a tenant may store a flow under this name (D6.1). */
function checkStorable(name: string): void {
  if (name === 'tools') throw invalidRequest('the name tools is reserved; choose another one', { param: '/name' })
  if (!NAME.test(name)) {
    throw invalidRequest(
      'name must be 1 to 64 of the characters a-z 0-9 _ - and begin with a letter or digit; choose another one',
      { param: '/name' },
    )
  }
  refuseBuiltIn(name)
}

/** Throws unless a tenant may save a flow with this body under this name. */
export function checkSaved(name: string, body: JsonObject): void {
  checkStorable(name)
  if (body['name'] !== undefined && body['name'] !== name)
    throw invalidRequest(`name differs from ${name} in the path; leave it out or correct it`, { param: '/name' })
}

/** Throws for a built-in flow, because these cannot be changed. */
export function refuseBuiltIn(name: string): void {
  if (findBuiltIn(name))
    throw new AppError('permission', `${name} is built in and cannot be changed or deleted; use another name`)
}

/** No flow can have a name of another form, so such names are never looked up. */
export const isFlowName = (name: string): boolean => NAME.test(name)

export const noFlow = (name: string): AppError => notFound(`there is no flow ${name}; GET /flows lists the flows`)

/** The same for a draft as for a flow that does not exist (api.md "Flow"). */
export const noPublishedFlow = (name: string): AppError =>
  notFound(`there is no published flow ${name}; GET /flows lists the flows and their states`)

/** The error when a draft was saved after the published version, which hides it. */
export const hiddenByDraft = ({ name, version, published_version: hidden }: Omit<Flow, 'definition'>): AppError =>
  notFound(
    `version ${hidden} of ${name} is published, but the draft ${version} hides it: POST /flows/${name}/publish publishes the draft, ` +
      `and a run with "version": ${hidden} runs the published one. A PUT with ?keep_published=true hides nothing`,
  )

export const neverPublished = (name: string, version: number): AppError =>
  notFound(
    `version ${version} of ${name} was never published; GET /flows/${name}/revisions lists the versions, and whether they were`,
  )
