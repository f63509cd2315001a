import { AppError } from '../../../../shared/kernel/errors.ts'

/** The places of what a request chooses, as JSON pointers by the native names. */
export type Places = Readonly<Record<string, string>>

/** Carries out a step. An error of it names the place of the fault in the native request. */
export async function inPlaces<T>(places: Places, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (cause) {
    const place = cause instanceof AppError ? placeOf(places, cause) : undefined
    if (!(cause instanceof AppError) || place === undefined) throw cause
    throw new AppError(cause.kind, cause.message, { param: place, cause })
  }
}

function placeOf(places: Places, { param = '' }: AppError): string | undefined {
  const [, name = '', rest = ''] = /^\/(\w+)(.*)$/s.exec(param) ?? []
  const place = places[name]
  return place === undefined ? undefined : place + rest
}
