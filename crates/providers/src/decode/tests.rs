mod clients; // bodies as clients send them
mod mutations; // bodies that are damaged
mod refusals; // what is refused, and in which words
mod round_trip; // what our codec sends
