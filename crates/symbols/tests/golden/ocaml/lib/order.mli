type 'a line
type status = Open | Closed of string | Lost

val limit : int
val total : ?verbose:bool -> rate:int -> 'a line -> int
exception Missing of string

module type PRICED = sig
  type t
  val price : t -> int
end

module Make (P : PRICED) : PRICED with type t = P.t
class virtual document : string -> object method name : string end
