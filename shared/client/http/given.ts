type Given<Values> = { [Name in keyof Values as undefined extends Values[Name] ? never : Name]: Values[Name] } & {
  [Name in keyof Values as undefined extends Values[Name] ? Name : never]?: Exclude<Values[Name], undefined>
}

/** The values that are not undefined, which JSON leaves out. */
export const given = <Values extends object>(values: Values): Given<Values> => JSON.parse(JSON.stringify(values))
