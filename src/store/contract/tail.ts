/**
 * Rows that are stored while a run is active and do not belong to it get a `seq` from here upwards, the tail band. They can be read at once
 * and sort after the rows of the run; when it ends they are renumbered to follow its last row.
 */
export const TAIL_SEQ = 2 ** 50
