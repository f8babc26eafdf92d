export type JSONValue = null | string | number | boolean | JSONValue[] | JSONObject
export type JSONObject = { [key: string]: JSONValue | undefined }
